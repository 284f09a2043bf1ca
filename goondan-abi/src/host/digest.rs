//! Owns the digests of files: what a bundle pins a library by.

use std::fmt::Write;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use goondan_core::{Error, ErrorCode, Result};
use sha2::{Digest, Sha256};

/// The SHA-256 digest of a file, in lower-case hexadecimal digits.
pub(super) fn of_file(path: &Path) -> Result<String> {
    let failed = |error: std::io::Error| {
        Error::new(ErrorCode::EXT_LOAD, format!("`{}` cannot be read: {error}", path.display()))
            .suggest("check the permissions of the file")
            .caused_by(error)
    };
    let mut file = File::open(path).map_err(failed)?;
    let (mut digest, mut part) = (Sha256::new(), vec![0; 1 << 16]);
    loop {
        match file.read(&mut part).map_err(failed)? {
            0 => break,
            read => digest.update(&part[..read]),
        }
    }
    Ok(hexadecimal(&digest.finalize()))
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing into a string does not fail.
        _ = write!(text, "{byte:02x}");
        text
    })
}
