//! Lines of a file, one at a time, none longer than a record can be.

use std::io::{self, BufRead, Read as _};

/// No record is longer, in bytes: 55 copies and the longest path and name take a fifth of it.
pub(crate) const LONGEST_LINE: usize = 64 << 10;

/// The lines of a reader.
#[derive(Debug)]
pub(crate) struct Lines<R> {
    reader: R,
    line: Vec<u8>,
    read: u64,
}

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// A line, which is kept until the next one.
    Line,
    /// One that was skipped without being kept.
    TooLong,
    End,
}

/// What some editors put in front of UTF-8.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

impl<R: BufRead> Lines<R> {
    pub(crate) const fn new(reader: R) -> Self {
        Self { reader, line: Vec::new(), read: 0 }
    }

    /// How many bytes were read.
    pub(crate) const fn read(&self) -> u64 {
        self.read
    }

    /// The line that came last, without its end.
    pub(crate) fn line(&self) -> &[u8] {
        &self.line
    }

    /// Goes on to the next line.
    ///
    /// Errors: the reader's.
    pub(crate) fn next(&mut self) -> io::Result<Next> {
        self.line.clear();
        let is_first = self.read == 0;
        let mut limited = (&mut self.reader).take(LONGEST_LINE as u64 + 1);
        self.read += limited.read_until(b'\n', &mut self.line)? as u64;
        if is_first && self.line.starts_with(BYTE_ORDER_MARK) {
            self.line.drain(..BYTE_ORDER_MARK.len());
        }
        match self.line.last() {
            None if is_first && self.read > 0 => Ok(Next::Line),
            None => Ok(Next::End),
            Some(b'\n') => {
                self.line.pop();
                if self.line.last() == Some(&b'\r') {
                    self.line.pop();
                }
                Ok(Next::Line)
            }
            Some(_) if self.line.len() > LONGEST_LINE => {
                self.skip()?;
                Ok(Next::TooLong)
            }
            Some(_) => Ok(Next::Line),
        }
    }

    /// Passes over the rest of a line.
    fn skip(&mut self) -> io::Result<()> {
        loop {
            let there = match self.reader.fill_buf() {
                Ok(there) => there,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let end = there.iter().position(|&byte| byte == b'\n');
            let passed = end.map_or(there.len(), |end| end + 1);
            self.reader.consume(passed);
            self.read += passed as u64;
            if end.is_some() || passed == 0 {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use super::*;

    fn all(text: &[u8]) -> (Vec<String>, usize) {
        let mut lines = Lines::new(BufReader::with_capacity(100, text));
        let mut found = Vec::new();
        loop {
            match lines.next().unwrap() {
                Next::Line => found.push(String::from_utf8(lines.line().to_vec()).unwrap()),
                Next::TooLong => found.push("too long".to_owned()),
                Next::End => break,
            }
        }
        assert_eq!(lines.read(), text.len() as u64);
        (found, lines.line.capacity())
    }

    #[test]
    fn the_last_line_may_lack_its_end() {
        assert_eq!(all(b"").0, [""; 0]);
        assert_eq!(all(b"a\n\nb\r\nc").0, ["a", "", "b", "c"]);
    }

    #[test]
    fn a_line_of_10_mib_takes_no_memory() {
        let text = [&b"a\n"[..], &vec![b'x'; 10 << 20], b"\nb\n", &vec![b'y'; LONGEST_LINE], b"\nc"].concat();
        let (lines, capacity) = all(&text);
        assert_eq!(
            (&*lines[0], &*lines[1], &*lines[2], lines[3].len(), &*lines[4]),
            ("a", "too long", "b", LONGEST_LINE, "c")
        );
        assert!(capacity <= 4 * LONGEST_LINE, "{capacity}");
    }
}
