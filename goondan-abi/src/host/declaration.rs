//! Parses the declaration of a library from untrusted bytes, and checks whether this program can load the library.

use std::path::Path;

use goondan_core::{API_VERSION, Error, ErrorCode, Result};

use crate::table::{ABI_MAJOR, ABI_MINOR, Declaration, MAGIC, PluginTable};

/// The declaration of a library, parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Declared {
    pub(super) abi_major: u32,
    pub(super) abi_minor: u32,
    pointer_width: u32,
    panic_unwind: bool,
    plugin_table_size: u32,
    pub(super) api_version: String,
    pub(super) rustc: String,
    pub(super) target: String,
    pub(super) sdk_version: String,
}

/// The size of the part whose layout is the same in all versions.
const FROZEN: usize = 64;

impl Declared {
    /// Parses a declaration.
    ///
    /// # Errors
    /// `E_EXT_LOAD` if the bytes are no declaration.
    pub(super) fn parse(path: &Path, bytes: &[u8]) -> Result<Self> {
        let malformed = |what: &str| {
            Error::new(ErrorCode::EXT_LOAD, format!("the declaration in `{}` {what}", path.display()))
                .suggest("build or copy the library again")
        };
        let number = |offset: usize| {
            let bytes = bytes.get(offset..offset + 4).and_then(|bytes| bytes.try_into().ok());
            bytes.map(u32::from_ne_bytes).unwrap_or_default()
        };
        if bytes.len() < FROZEN {
            return Err(malformed(&format!("is cut off after {} bytes", bytes.len())));
        }
        if !bytes.starts_with(&MAGIC) {
            return Err(malformed("does not start with its magic bytes"));
        }
        let size = number(std::mem::offset_of!(Declaration, size));
        if size < FROZEN as u32 || size as usize > bytes.len() {
            return Err(malformed(&format!("claims {size} bytes and has {}", bytes.len())));
        }
        // A shorter declaration, of another version, has no texts at the offsets below.
        let complete = size as usize >= size_of::<Declaration>();
        let text = |offset: usize, length: usize| {
            let bytes = bytes.get(offset..offset + length).filter(|_| complete).unwrap_or_default();
            let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
            String::from_utf8_lossy(&bytes[..end]).into_owned()
        };
        Ok(Self {
            abi_major: number(std::mem::offset_of!(Declaration, abi_major)),
            abi_minor: number(std::mem::offset_of!(Declaration, abi_minor)),
            pointer_width: number(std::mem::offset_of!(Declaration, pointer_width)),
            panic_unwind: number(std::mem::offset_of!(Declaration, panic_unwind)) == 1,
            plugin_table_size: number(std::mem::offset_of!(Declaration, plugin_table_size)),
            api_version: text(std::mem::offset_of!(Declaration, api_version), 32),
            rustc: text(std::mem::offset_of!(Declaration, rustc), 64),
            target: text(std::mem::offset_of!(Declaration, target), 64),
            sdk_version: text(std::mem::offset_of!(Declaration, sdk_version), 32),
        })
    }

    /// Checks whether this program can load the library.
    ///
    /// # Errors
    /// `E_EXT_COMPAT` with the versions of the library and of this program, and the remedy, if it cannot.
    // COMPAT-01
    pub(super) fn check(&self, path: &Path) -> Result<()> {
        let refused = |theirs: String, ours: String, remedy: &'static str| {
            let message = format!("`{}` {theirs}; this program {ours}", path.display());
            Err(Error::new(ErrorCode::EXT_COMPAT, message).suggest(remedy))
        };
        let same = "build the library and the program with the same version of goondan";
        if self.abi_major != ABI_MAJOR || self.abi_minor > ABI_MINOR {
            return refused(
                format!("was built for ABI {}.{}{}", self.abi_major, self.abi_minor, self.by()),
                format!("speaks ABI {ABI_MAJOR}.{ABI_MINOR} (goondan {})", env!("CARGO_PKG_VERSION")),
                same,
            );
        }
        if self.pointer_width != usize::BITS {
            let theirs = format!("has pointers of {} bits", self.pointer_width);
            let remedy = "build the library for the target that the program was built for";
            return refused(theirs, format!("of {}", usize::BITS), remedy);
        }
        if !self.panic_unwind {
            return refused(
                "was built with `panic = \"abort\"`: one panic of an extension would end the program".to_owned(),
                "needs panics that unwind".to_owned(),
                "remove `panic = \"abort\"` from the profile that the library is built with",
            );
        }
        // Entries are only ever added, so a table that is shorter than in version 1.0 is invalid.
        if (self.plugin_table_size as usize) < std::mem::offset_of!(PluginTable, register) + size_of::<usize>() {
            let theirs = format!("has a table of {} bytes", self.plugin_table_size);
            return refused(theirs, format!("needs {}", size_of::<PluginTable>()), same);
        }
        if self.api_version != API_VERSION {
            return refused(
                format!("was built for `{}`{}", self.api_version, self.by()),
                format!("speaks `{API_VERSION}`"),
                same,
            );
        }
        Ok(())
    }

    fn by(&self) -> String {
        if self.sdk_version.is_empty() { String::new() } else { format!(" (goondan {})", self.sdk_version) }
    }
}
