//! Work on many messages runs portion by portion, with other commands between.

use hyper::StatusCode;
use model::{PageEnd, Reply};
use serde_json::{Map, Value as Json};

use crate::app::json;
use crate::body::Answer;
use crate::problem::{Problem, Result};

/// The progress of work that runs portion by portion.
#[derive(Debug)]
pub(crate) struct Portions {
    /// Messages so far.
    pub(crate) count: u64,
    /// The verb for the work.
    word: &'static str,
    /// The start of the next portion.
    pub(crate) until: Option<PageEnd>,
}

impl Portions {
    pub(crate) const fn of(word: &'static str) -> Self {
        Self { count: 0, word, until: None }
    }

    /// Takes the reply to the next portion; gives the answer when there are no more. A queue that
    /// has gone meanwhile has no more either: it went with its last message.
    pub(crate) fn take(
        &mut self,
        reply: Result<Reply>,
        missing: impl FnOnce() -> Problem,
    ) -> Result<Option<Answer>> {
        match reply.map_err(|problem| problem.after(self.count, self.word))? {
            Reply::CountUntil { count, next } => {
                self.count += count;
                self.until = Some(next);
                return Ok(None);
            }
            Reply::Count(count) => self.count += count,
            Reply::NotFound if self.until.is_some() => {}
            _ => return Err(missing()),
        }
        let mut told = Map::new();
        told.insert(self.word.to_owned(), self.count.into());
        Ok(Some(json(StatusCode::OK, &Json::Object(told))))
    }
}

#[cfg(test)]
mod tests {
    use model::{MessageId, MessageState, Refusal};

    use super::*;

    fn until(count: u64) -> Result<Reply> {
        let state = MessageState::Ready;
        let next = PageEnd { state, priority: 0, place: 7, message: MessageId(7) };
        Ok(Reply::CountUntil { count, next })
    }

    fn missing() -> Problem {
        Problem::not_found("there is no such queue")
    }

    #[test]
    fn queue_gone_between_portions_ends_answer() {
        let mut moved = Portions::of("moved");
        assert!(moved.take(until(90_000), missing).unwrap().is_none());
        let answer = moved.take(Ok(Reply::NotFound), missing).unwrap().expect("the last");
        assert_eq!((answer.status(), moved.count), (StatusCode::OK, 90_000));
    }

    #[test]
    fn queue_that_never_existed_is_missing() {
        let problem =
            Portions::of("moved").take(Ok(Reply::NotFound), missing).err().expect("a refusal");
        assert_eq!(problem, missing());
    }

    #[test]
    fn refusal_tells_what_was_done_before() {
        let mut deleted = Portions::of("deleted");
        let refused = || Err(Problem::from(Refusal::StoreFull));
        let first = deleted.take(refused(), missing).err().expect("a refusal");
        assert!(!first.detail.contains("before"), "{first:?}");
        assert!(deleted.take(until(3), missing).unwrap().is_none());
        let problem = deleted.take(refused(), missing).err().expect("a refusal");
        assert!(problem.detail.contains("; 3 were deleted before"), "{problem:?}");
    }
}
