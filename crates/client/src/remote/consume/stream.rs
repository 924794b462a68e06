//! The stream of a listener's messages.

use std::time::Duration;

use hyper::body::Bytes;
use hyper::header::HeaderMap;
use tokio::time::timeout;

use super::{Consumer, Phase};
use crate::remote::credentials::{Credentials, Grant};
use crate::remote::executor::{Needs, RequestExecutor};
use crate::remote::extension::call;
use crate::remote::stream::{End, Follower, StreamRequest};
use openkv_core::model::{
    CONSUME_FRAME_BYTES_MAX, Error, LEAVE_MS_MAX, Limits, Result, WATCH_SILENCE_MS_MAX,
};
use openkv_wire::protocol::Command;
use openkv_wire::protocol::extension::{CONSUME, QUEUES};
use openkv_wire::protocol::frame::{Consume, ConsumeMessage, read_message, write_consume};

/// Bound of the end of a stream, in which messages on their way still arrive.
const LEAVE: Duration = Duration::from_millis(LEAVE_MS_MAX);

impl Follower for Consumer {
    fn request(&self, _: &Credentials, _: &Grant) -> Result<StreamRequest> {
        let request = Consume {
            queue: self.options.queue.clone(),
            lock_ms: self.options.lock_ms,
            concurrency: self.concurrency,
            credits: self.begin(),
        };
        Ok(StreamRequest {
            headers: HeaderMap::new(),
            of_source: false,
            path: CONSUME,
            body: Bytes::from(write_consume(&request)),
            needs: Some(Needs { extension: QUEUES, what: "listening to queues" }),
            frame_bytes_max: CONSUME_FRAME_BYTES_MAX,
            silence_ms_max: WATCH_SILENCE_MS_MAX,
        })
    }

    async fn take(&self, message: Vec<u8>, is_first: bool) -> Result<bool, End> {
        match read_message(&message, is_first).map_err(End::Final)? {
            ConsumeMessage::Opened(stream) => {
                self.opened(stream);
                Ok(false)
            }
            ConsumeMessage::Dispatched(deliveries) => {
                self.accept(deliveries);
                Ok(true)
            }
        }
    }

    fn is_over(&self) -> bool {
        self.phase() > Phase::Open
    }

    fn fail(&self, error: Error) {
        self.end(Err(error));
        self.enter(Phase::Stopped);
    }
}

impl Consumer {
    /// Waits until the listener takes no more, and asks the server to end the stream. Messages on
    /// their way still arrive and are put back; then the stream ends. Returns if that takes too
    /// long.
    pub(super) async fn leave(&self, executor: &RequestExecutor) {
        self.reaches(Phase::Stopped).await;
        let ending = async {
            loop {
                let stream = self.state.lock().stream;
                if stream != 0 {
                    let frame = stream.to_le_bytes().to_vec();
                    let _again_then =
                        call(executor, Command::ConsumeEnd, frame, Limits::wide()).await;
                }
                // The stream may be about to open.
                self.opened.notified().await;
            }
        };
        let _in_time = timeout(LEAVE, ending).await;
    }
}
