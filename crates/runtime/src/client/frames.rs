//! A body that goes on and on, event by event.

use super::{CallError, Format};
use bytes::{Buf as _, Bytes, BytesMut};
use http_body_util::BodyExt as _;
use kube::client::Body;

/// A longer event is refused; etcd stores no object near this size.
const LONGEST: usize = 64 << 20;
/// Bytes of the length before an event in protobuf.
const PREFIX: usize = 4;

/// The events of a streaming answer: lines in JSON, in protobuf each with its length before it.
pub struct Frames {
    format: Format,
    body: Body,
    buffer: BytesMut,
    /// Up to here the buffer holds no line end.
    searched: usize,
    ended: bool,
}

impl Frames {
    pub(super) fn new(format: Format, body: Body) -> Self {
        Frames {
            format,
            body,
            buffer: BytesMut::new(),
            searched: 0,
            ended: false,
        }
    }

    /// How the events are written.
    pub fn format(&self) -> Format {
        self.format
    }

    /// The next event that is there already, without waiting.
    ///
    /// # Errors
    /// When it is too long.
    pub fn ready(&mut self) -> Result<Option<Bytes>, CallError> {
        let frame = match self.format {
            Format::Json => self.line(),
            Format::Protobuf(_) => self.measured()?,
        };
        if frame.is_none() && self.buffer.len() > LONGEST + PREFIX {
            return Err(too_long());
        }
        Ok(frame)
    }

    /// The next event; `None` at the end. What follows the last whole one is left out.
    ///
    /// # Errors
    /// When the connection breaks off, or the event is too long.
    pub async fn next(&mut self) -> Result<Option<Bytes>, CallError> {
        loop {
            if let Some(frame) = self.ready()? {
                return Ok(Some(frame));
            }
            if self.ended {
                return Ok(None);
            }
            match self.body.frame().await {
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        self.take(data);
                    }
                }
                Some(Err(error)) => return Err(CallError::NoAnswer(error.to_string())),
                None => self.ended = true,
            }
        }
    }

    /// What followed the last whole event at the end: the last line of a text that does not end with one.
    pub fn rest(&mut self) -> Bytes {
        self.searched = 0;
        self.buffer.split().freeze()
    }

    /// A piece that begins with an event, which most do, is not copied.
    fn take(&mut self, data: Bytes) {
        if !self.buffer.is_empty() {
            return self.buffer.extend_from_slice(&data);
        }
        self.buffer = data.try_into_mut().unwrap_or_else(|data| data.as_ref().into());
    }

    fn line(&mut self) -> Option<Bytes> {
        let Some(at) = memchr::memchr(b'\n', &self.buffer[self.searched..]) else {
            self.searched = self.buffer.len();
            return None;
        };
        let line = self.buffer.split_to(self.searched + at).freeze();
        self.buffer.advance(1);
        self.searched = 0;
        Some(line)
    }

    fn measured(&mut self) -> Result<Option<Bytes>, CallError> {
        let Some(&prefix) = self.buffer.first_chunk::<PREFIX>() else {
            return Ok(None);
        };
        let length = u32::from_be_bytes(prefix) as usize;
        if length > LONGEST {
            return Err(too_long());
        }
        if self.buffer.len() < PREFIX + length {
            return Ok(None);
        }
        self.buffer.advance(PREFIX);
        Ok(Some(self.buffer.split_to(length).freeze()))
    }
}

fn too_long() -> CallError {
    CallError::Unreadable(format!("an event of the watch is longer than {LONGEST} bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use volcano_api::protobuf;

    async fn all(format: Format, body: &[u8]) -> Result<Vec<Vec<u8>>, CallError> {
        let mut frames = Frames::new(format, Body::from(body.to_vec()));
        let mut all = Vec::new();
        while let Some(frame) = frames.next().await? {
            all.push(frame.to_vec());
        }
        Ok(all)
    }

    #[tokio::test]
    async fn events_come_whole_and_an_unfinished_one_not_at_all() {
        let lines = all(Format::Json, b"one\ntwo\n\nthr").await.unwrap();
        assert_eq!(lines, [b"one".as_slice(), b"two", b""]);
        let protobuf = Format::Protobuf(protobuf::POD);
        let cases: [(&[u8], &[&[u8]]); 5] = [
            (b"\0\0\0\x03one\0\0\0\x03two", &[b"one", b"two"]),
            (b"\0\0\0\0\0\0\0\x01\n", &[b"", b"\n"]),
            (b"\0\0\0\x03one\0\0\0\x05two", &[b"one"]),
            (b"\0\0\0\x03one\0\0\0", &[b"one"]),
            (b"", &[]),
        ];
        for (body, expected) in cases {
            assert_eq!(all(protobuf, body).await.unwrap(), expected, "{body:?}");
        }
    }

    /// The events of a body that comes in two pieces; when they are alone nobody else holds their memory.
    fn in_two(format: Format, body: &[u8], at: usize, alone: bool) -> Vec<Vec<u8>> {
        let whole = Bytes::copy_from_slice(body);
        let pieces = if alone {
            [body[..at].to_vec().into(), body[at..].to_vec().into()]
        } else {
            [whole.slice(..at), whole.slice(at..)]
        };
        let mut frames = Frames::new(format, Body::empty());
        let mut events = Vec::new();
        for piece in pieces {
            frames.take(piece);
            events.extend(std::iter::from_fn(|| frames.ready().unwrap()).map(|event| event.to_vec()));
        }
        events
    }

    #[tokio::test]
    async fn events_are_the_same_wherever_the_body_is_cut() {
        let lines: (_, &[u8]) = (Format::Json, b"one\ntwo\n\nfour\nfi");
        let protobuf = Format::Protobuf(protobuf::POD);
        let measured: (_, &[u8]) = (protobuf, b"\0\0\0\x03one\0\0\0\0\0\0\0\x03two\0\0");
        for (format, body) in [lines, measured] {
            let expected = all(format, body).await.unwrap();
            for at in 0..=body.len() {
                for alone in [true, false] {
                    let events = in_two(format, body, at, alone);
                    assert_eq!(events, expected, "{format:?} cut at {at}, alone: {alone}");
                }
            }
        }
    }

    #[tokio::test]
    async fn an_event_that_claims_to_be_huge_is_refused_before_it_comes() {
        let longest = u32::try_from(LONGEST).unwrap();
        let claim = |length: u32| all_of(length.to_be_bytes());
        assert!(claim(longest).await.unwrap().is_empty());
        let error = claim(longest + 1).await.unwrap_err();
        assert!(matches!(error, CallError::Unreadable(_)), "{error}");
    }

    async fn all_of(prefix: [u8; PREFIX]) -> Result<Vec<Vec<u8>>, CallError> {
        all(Format::Protobuf(protobuf::POD), &prefix).await
    }
}
