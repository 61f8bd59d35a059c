//! A body that goes on and on, line by line.

use super::CallError;
use bytes::{Buf as _, Bytes, BytesMut};
use http_body_util::BodyExt as _;
use kube::client::Body;

/// A longer line is refused; etcd stores no object near this size.
const LONGEST_LINE: usize = 64 << 20;

/// The lines of a streaming answer.
pub struct Lines {
    body: Body,
    buffer: BytesMut,
    /// Up to here the buffer holds no line end.
    searched: usize,
    ended: bool,
}

impl Lines {
    pub(super) fn new(body: Body) -> Self {
        Lines {
            body,
            buffer: BytesMut::new(),
            searched: 0,
            ended: false,
        }
    }

    /// The next line that is there already, without waiting.
    pub fn ready(&mut self) -> Option<Bytes> {
        let found = self.buffer[self.searched..]
            .iter()
            .position(|&byte| byte == b'\n');
        let Some(at) = found else {
            self.searched = self.buffer.len();
            return None;
        };
        let line = self.buffer.split_to(self.searched + at).freeze();
        self.buffer.advance(1);
        self.searched = 0;
        Some(line)
    }

    /// The next line; `None` at the end. What follows the last line end is an unfinished line and left out.
    ///
    /// # Errors
    /// When the connection breaks off.
    pub async fn next(&mut self) -> Result<Option<Bytes>, CallError> {
        loop {
            if let Some(line) = self.ready() {
                return Ok(Some(line));
            }
            if self.ended {
                return Ok(None);
            }
            if self.buffer.len() > LONGEST_LINE {
                return Err(CallError::Unreadable(format!(
                    "a line of the watch is longer than {LONGEST_LINE} bytes"
                )));
            }
            match self.body.frame().await {
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        self.buffer.extend_from_slice(&data);
                    }
                }
                Some(Err(error)) => return Err(CallError::NoAnswer(error.to_string())),
                None => self.ended = true,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_come_whole_and_an_unfinished_one_not_at_all() {
        let mut lines = Lines::new(Body::from(b"one\ntwo\n\nthr".to_vec()));
        let mut all = Vec::new();
        while let Some(line) = lines.next().await.unwrap() {
            all.push(String::from_utf8(line.to_vec()).unwrap());
        }
        assert_eq!(all, ["one", "two", ""]);
    }
}
