//! The stream by which a listener's messages come.

use std::time::Duration;

use hyper::body::Bytes;
use tokio::time::timeout;

use super::{Consumer, Phase};
use crate::codec::frame::{Consume, Verb};
use crate::connect::consume::{ConsumeMessage, read_message, write_consume};
use crate::connect::extension::{CONSUME, QUEUES};
use crate::model::{CONSUME_FRAME_BYTES_MAX, Error, LEAVE_MS_MAX, Limits, Result};
use crate::remote::ask::Asker;
use crate::remote::credentials::{Credentials, Grant};
use crate::remote::extension::{Needs, call};
use crate::remote::stream::{End, Follower, Wish};

/// How long a stream that is left may take to say what it had on its way.
const LEAVE: Duration = Duration::from_millis(LEAVE_MS_MAX);

impl Follower for Consumer {
    fn wish(&self, _: &Credentials, _: &Grant) -> Result<Wish> {
        let asked = Consume {
            queue: self.wish.queue.clone(),
            lock_ms: self.wish.lock_ms,
            concurrency: self.concurrency,
            places: self.begin(),
        };
        Ok(Wish {
            path: CONSUME,
            body: Bytes::from(write_consume(&asked)),
            needs: Some(Needs { extension: QUEUES, what: "listening to queues" }),
            frame_bytes_max: CONSUME_FRAME_BYTES_MAX,
        })
    }

    async fn take(&self, message: Vec<u8>, is_first: bool) -> Result<bool, End> {
        match read_message(&message, is_first).map_err(End::Final)? {
            ConsumeMessage::Opened(stream) => {
                self.opened(stream);
                Ok(false)
            }
            ConsumeMessage::Dealt(deliveries) => {
                self.take_in(deliveries);
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
    /// Waits until nothing more is wanted, and asks the server to end the stream: what is on its
    /// way still comes, to be given back, and the stream ends behind it. Returns when that has
    /// taken too long.
    pub(super) async fn leave(&self, asker: &Asker) {
        self.reaches(Phase::Stopped).await;
        let ending = async {
            loop {
                let stream = self.state.lock().stream;
                if stream != 0 {
                    let frame = stream.to_le_bytes().to_vec();
                    let _again_then = call(asker, Verb::ConsumeEnd, frame, Limits::wide()).await;
                }
                // It may be about to open.
                self.opened.notified().await;
            }
        };
        let _in_time = timeout(LEAVE, ending).await;
    }
}
