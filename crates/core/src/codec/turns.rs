//! The values of the messages that keep the rule of a queue, and the turn of a group (docs/format.md §2).

use super::Malformed;
use super::fields::{Fields, put_bytes, put_number};
use crate::model::{EncodedValue, Encoding, LimitAlgorithm, QueueRule, Rate, RunLimit};

/// The first byte.
const FORMAT: u8 = 1;

/// What is kept of a queue with a rule or with groups.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeptRule {
    /// The queue.
    pub queue: String,
    /// Its limits.
    pub rule: QueueRule,
    /// The number of the last turn.
    pub turn: u64,
    /// Whether messages without a group have the next turn.
    pub plain_next: bool,
    /// The state of the rate of the queue.
    pub rate: Option<EncodedValue>,
}

/// What is kept of a group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeptTurn {
    /// The group.
    pub group: String,
    /// The state of its rate, and until when it counts, in ms since the epoch.
    pub rate: Option<(EncodedValue, i64)>,
}

impl KeptRule {
    /// The bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![FORMAT];
        put_bytes(&mut out, self.queue.as_bytes());
        for RunLimit { concurrency, rate } in [self.rule.queue, self.rule.group] {
            put_number(&mut out, concurrency.unwrap_or(0).into());
            put_number(&mut out, rate.map_or(0, |rate| rate.limit.into()));
            if let Some(Rate { algorithm, per_ms, .. }) = rate {
                put_number(&mut out, per_ms.cast_unsigned());
                out.push(algorithm as u8);
            }
        }
        put_number(&mut out, self.turn);
        out.push(u8::from(self.plain_next));
        put_state(&mut out, self.rate.as_ref());
        out
    }

    /// Reads what [`KeptRule::encode`] has written.
    ///
    /// # Errors
    /// Other bytes, as a later version may write them.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut fields = started(bytes)?;
        let queue = fields.text()?;
        let rule = QueueRule { queue: limit(&mut fields)?, group: limit(&mut fields)? };
        let (turn, plain_next) = (fields.number()?, fields.byte()? != 0);
        Ok(Self { queue, rule, turn, plain_next, rate: state(&mut fields)? })
    }
}

impl KeptTurn {
    /// The bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![FORMAT];
        put_bytes(&mut out, self.group.as_bytes());
        let (state, until_ms) = self.rate.as_ref().map_or((None, 0), |(of, at)| (Some(of), *at));
        put_state(&mut out, state);
        put_number(&mut out, until_ms.cast_unsigned());
        out
    }

    /// Reads what [`KeptTurn::encode`] has written.
    ///
    /// # Errors
    /// Other bytes, as a later version may write them.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut fields = started(bytes)?;
        let (group, state) = (fields.text()?, state(&mut fields)?);
        let until_ms = fields.number()?.cast_signed();
        Ok(Self { group, rate: state.map(|state| (state, until_ms)) })
    }
}

fn started(bytes: &[u8]) -> Result<Fields<'_>, Malformed> {
    let mut fields = Fields::of(bytes);
    match fields.byte()? {
        FORMAT => Ok(fields),
        _ => fields.fault("an unknown format of the limits of a queue"),
    }
}

fn limit(fields: &mut Fields<'_>) -> Result<RunLimit, Malformed> {
    let concurrency = Some(small(fields)?).filter(|number| *number > 0);
    let rate = match small(fields)? {
        0 => None,
        limit => {
            let per_ms = fields.number()?.cast_signed();
            let Some(algorithm) = LimitAlgorithm::ALL.get(usize::from(fields.byte()?)) else {
                return fields.fault("an unknown algorithm of a rate");
            };
            Some(Rate { algorithm: *algorithm, limit, per_ms })
        }
    };
    Ok(RunLimit { concurrency, rate })
}

fn small(fields: &mut Fields<'_>) -> Result<u32, Malformed> {
    let number = fields.number()?;
    u32::try_from(number).or_else(|_| fields.fault("a limit that is too large"))
}

fn put_state(out: &mut Vec<u8>, state: Option<&EncodedValue>) {
    put_bytes(out, state.map_or(&[], |state| &state.bytes));
}

fn state(fields: &mut Fields<'_>) -> Result<Option<EncodedValue>, Malformed> {
    let bytes = fields.slice()?.to_vec();
    Ok((!bytes.is_empty()).then_some(EncodedValue { encoding: Encoding::Cbor, bytes }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_and_turns_are_read_as_they_were_written() {
        let state = EncodedValue { encoding: Encoding::Cbor, bytes: vec![1, 2] };
        let rate = Rate { algorithm: LimitAlgorithm::TokenBucket, limit: 5, per_ms: 1000 };
        let rule = QueueRule {
            queue: RunLimit { concurrency: Some(3), rate: None },
            group: RunLimit { concurrency: None, rate: Some(rate) },
        };
        let kept = KeptRule {
            queue: "mail".into(),
            rule,
            turn: 1 << 40,
            plain_next: true,
            rate: Some(state.clone()),
        };
        let bytes = kept.encode();
        assert_eq!(KeptRule::decode(&bytes).unwrap(), kept);
        assert_eq!(KeptRule::decode(&KeptRule::default().encode()).unwrap(), KeptRule::default());
        for end in 0..bytes.len() {
            assert!(KeptRule::decode(&bytes[..end]).is_err(), "{end}");
        }
        for rate in [None, Some((state, 1 << 41))] {
            let kept = KeptTurn { group: "ada".into(), rate };
            let bytes = kept.encode();
            assert_eq!(KeptTurn::decode(&bytes).unwrap(), kept);
            for end in 0..bytes.len() {
                assert!(KeptTurn::decode(&bytes[..end]).is_err(), "{end}");
            }
        }
        assert!(KeptTurn::decode(&[2, 0, 0, 0]).is_err());
    }
}
