//! Target `library`: any file where a library of extensions is expected.

use std::io::Write;

use goondan::ErrorCode;
use goondan::plugin::Library;

/// Inspects a file with the bytes `data` as a library. It has extensions, or is refused with a reason and a remedy.
pub fn library(data: &[u8]) {
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    file.write_all(data).expect("written");
    match Library::inspect(file.path()) {
        Ok(library) => {
            assert!(!library.extensions().is_empty());
            assert!(library.extensions().iter().all(|extension| extension.package == library.package()));
        }
        Err(error) => {
            let code = error.code();
            assert!(*code == ErrorCode::EXT_LOAD || *code == ErrorCode::EXT_COMPAT, "{error:?}");
            assert!(error.suggestion().is_some(), "{error:?}");
        }
    }
}
