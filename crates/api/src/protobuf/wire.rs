//! The wire format: fields one after the other, each a number, a wire type and a value.

use thiserror::Error;

/// What is wrong with the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(super) enum Fault {
    #[error("the bytes end in the middle of a field")]
    Truncated,
    #[error("a number of more than 64 bits")]
    LongNumber,
    #[error("a field without a valid number")]
    FieldNumber,
    #[error("wire type {0}, which Kubernetes does not use")]
    WireType(u8),
}

/// A value as it is on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Raw<'a> {
    /// A whole number or a truth value.
    Number(u64),
    /// A text, bytes or a message.
    Bytes(&'a [u8]),
    /// Four or eight bytes; no field that is read has this form.
    Fixed,
}

/// Reads the fields of a message. Values are not looked into, so passing over one costs next to nothing.
#[derive(Clone, Copy)]
pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(super) fn new(message: &'a [u8]) -> Self {
        Reader { rest: message }
    }

    /// The next field; `None` at the end.
    #[inline]
    pub(super) fn field(&mut self) -> Result<Option<(u32, Raw<'a>)>, Fault> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let tag = u32::try_from(self.number()?).map_err(|_| Fault::FieldNumber)?;
        let number = tag >> 3;
        if number == 0 {
            return Err(Fault::FieldNumber);
        }
        let value = match tag & 7 {
            0 => Raw::Number(self.number()?),
            1 => self.fixed(8)?,
            2 => {
                let length = usize::try_from(self.number()?).map_err(|_| Fault::Truncated)?;
                Raw::Bytes(self.take(length)?)
            }
            5 => self.fixed(4)?,
            other => return Err(Fault::WireType(other as u8)),
        };
        Ok(Some((number, value)))
    }

    fn fixed(&mut self, length: usize) -> Result<Raw<'a>, Fault> {
        self.take(length).map(|_| Raw::Fixed)
    }

    #[inline]
    fn take(&mut self, length: usize) -> Result<&'a [u8], Fault> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or(Fault::Truncated)?;
        self.rest = rest;
        Ok(taken)
    }

    /// Most numbers are lengths and tags of one byte.
    #[inline]
    fn number(&mut self) -> Result<u64, Fault> {
        match self.rest {
            &[byte, ref rest @ ..] if byte < 0x80 => {
                self.rest = rest;
                Ok(u64::from(byte))
            }
            _ => self.long_number(),
        }
    }

    /// Seven bits to a byte, the lowest first; the highest bit says that more follow.
    fn long_number(&mut self) -> Result<u64, Fault> {
        let mut number = 0;
        for (at, &byte) in self.rest.iter().enumerate() {
            let bits = u64::from(byte & 0x7f);
            if at > 9 || (at == 9 && bits > 1) {
                return Err(Fault::LongNumber);
            }
            number |= bits << (7 * at);
            if byte < 0x80 {
                self.rest = &self.rest[at + 1..];
                return Ok(number);
            }
        }
        Err(Fault::Truncated)
    }
}

/// The values of one field, wherever in the message they are: the first one is known, the others come later.
#[derive(Clone, Copy)]
pub(super) struct Occurrences<'a> {
    number: u32,
    first: Option<Raw<'a>>,
    later: Reader<'a>,
}

impl<'a> Occurrences<'a> {
    pub(super) fn new(number: u32, first: Raw<'a>, later: Reader<'a>) -> Self {
        Occurrences {
            number,
            first: Some(first),
            later,
        }
    }

    #[inline]
    pub(super) fn next(&mut self) -> Result<Option<Raw<'a>>, Fault> {
        if let Some(first) = self.first.take() {
            return Ok(Some(first));
        }
        while let Some((number, value)) = self.later.field()? {
            if number == self.number {
                return Ok(Some(value));
            }
        }
        Ok(None)
    }

    /// How many there are up to the first fault, so that lists are as large as they have to be.
    pub(super) fn count(mut self) -> usize {
        std::iter::from_fn(|| self.next().ok().flatten()).count()
    }
}
