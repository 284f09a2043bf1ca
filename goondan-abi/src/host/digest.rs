//! SHA-256 digests of files, by which a bundle pins a library.

use std::fmt::Write;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use goondan_core::{Error, ErrorCode, Result};
use sha2::{Digest, Sha256};

/// Returns the SHA-256 digest of a file in lower-case hexadecimal digits.
pub(super) fn of_file(path: &Path) -> Result<String> {
    let failed = |error: io::Error| {
        Error::new(ErrorCode::EXT_LOAD, format!("`{}` cannot be read: {error}", path.display()))
            .suggest("check the permissions of the file")
            .caused_by(error)
    };
    File::open(path).and_then(of).map(|digest| hexadecimal(&digest)).map_err(failed)
}

/// Returns the SHA-256 digest of everything that `source` has left.
pub(super) fn of(mut source: impl Read) -> io::Result<[u8; 32]> {
    let (mut digest, mut part) = (Sha256::new(), vec![0; 1 << 16]);
    loop {
        match source.read(&mut part)? {
            0 => return Ok(digest.finalize().into()),
            read => digest.update(&part[..read]),
        }
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string does not fail.
        _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn the_digest_is_that_of_sha256sum() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("abc");
        std::fs::write(&path, "abc").unwrap();
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(of_file(&path).unwrap(), expected);
    }
}
