//! Reads the declaration and the records of a library file, as bytes. No code of the file runs, and its offsets and
//! sizes are checked against the length of the file.

use std::fs::{self, File};
use std::io::{Read, Seek};
use std::path::Path;

use goondan_core::{Error, ErrorCode, Result};
use object::read::elf::{ElfFile64, FileHeader, ProgramHeader};
use object::{Architecture, Endianness, Object, ObjectSection, ObjectSymbol, ReadCache, ReadRef, elf};

use crate::table::DECLARATION_SYMBOL;

/// The section of the records of extensions.
const RECORDS: &str = ".goondan";
/// The most bytes of records that are read. No real library has more.
const MAX_RECORDS: u64 = 16 << 20;
/// The most bytes of a declaration that are read. No declaration is larger.
const MAX_DECLARATION: u64 = 1 << 16;

/// The parts of a file that the host reads.
#[derive(Debug)]
pub(super) struct Contents {
    pub(super) declaration: Vec<u8>,
    pub(super) records: Vec<u8>,
}

/// The error for a file that is no library.
fn refused(path: &Path, what: impl AsRef<str>) -> Error {
    Error::new(ErrorCode::EXT_LOAD, format!("`{}` {}", path.display(), what.as_ref()))
}

fn damaged(path: &Path, what: &str) -> Error {
    refused(path, format!("is damaged or incomplete: {what}")).suggest("build or copy it again")
}

/// The error for a library that was built for another kind of machine.
fn foreign(path: &Path, built_for: &str) -> Error {
    let host = std::env::consts::ARCH;
    let message = format!("`{}` was built for {built_for}; this program runs on {host}", path.display());
    Error::new(ErrorCode::EXT_COMPAT, message)
        .suggest("build the library for the target that the program was built for")
}

/// Reads `file`, which was opened at `path`.
pub(super) fn read(path: &Path, mut file: File) -> Result<Contents> {
    check_identity(path, &mut file)?;
    let cache = ReadCache::new(file);
    let library = ElfFile64::<Endianness, _>::parse(&cache).map_err(|error| damaged(path, &error.to_string()))?;
    check_machine(path, &library)?;
    check_segments(path, &library, &cache)?;
    Ok(Contents { declaration: declaration(path, &library)?, records: records(path, &library)? })
}

type Elf<'a> = ElfFile64<'a, Endianness, &'a ReadCache<File>>;

/// Opens an ordinary file. Opening a pipe would block, and a directory cannot be read.
pub(super) fn open(path: &Path) -> Result<File> {
    let unreadable = |error: std::io::Error| {
        let suggestion = match error.kind() {
            std::io::ErrorKind::NotFound => "check the path; `cargo build` writes libraries into `target/`",
            _ => "check the permissions of the file",
        };
        refused(path, format!("cannot be read: {error}")).suggest(suggestion).caused_by(error)
    };
    let metadata = fs::metadata(path).map_err(unreadable)?;
    if !metadata.is_file() {
        let what = if metadata.is_dir() { "is a directory" } else { "is no ordinary file" };
        return Err(refused(path, what).suggest("name the library file itself, such as `libweather.so`"));
    }
    if metadata.len() == 0 {
        return Err(refused(path, "is empty").suggest("build or copy it again"));
    }
    File::open(path).map_err(unreadable)
}

/// Checks the first bytes of the file.
fn check_identity(path: &Path, file: &mut File) -> Result<()> {
    let mut start = Vec::new();
    let read = file.rewind().and_then(|()| file.by_ref().take(6).read_to_end(&mut start)).and_then(|_| file.rewind());
    read.map_err(|error| refused(path, format!("cannot be read: {error}")).caused_by(error))?;
    if !start.starts_with(&elf::ELFMAG) {
        let suggestion =
            "name the library that `cargo build` made of a crate with `crate-type = [\"rlib\", \"cdylib\"]`";
        return Err(refused(path, "is not a library of this system (an ELF file)").suggest(suggestion));
    }
    match start.get(4).copied().map(elf::FileClass) {
        Some(elf::ELFCLASS64) => Ok(()),
        Some(elf::ELFCLASS32) => Err(foreign(path, "a 32-bit machine")),
        _ => Err(damaged(path, "it ends within its header")),
    }
}

fn check_machine(path: &Path, library: &Elf<'_>) -> Result<()> {
    let ours = match std::env::consts::ARCH {
        "x86_64" => Architecture::X86_64,
        "aarch64" => Architecture::Aarch64,
        "riscv64" => Architecture::Riscv64,
        "loongarch64" => Architecture::LoongArch64,
        "powerpc64" => Architecture::PowerPc64,
        "s390x" => Architecture::S390x,
        _ => Architecture::Unknown,
    };
    let theirs = library.architecture();
    if theirs != ours {
        return Err(foreign(path, &format!("{theirs:?}").to_lowercase()));
    }
    if library.is_little_endian() != cfg!(target_endian = "little") {
        return Err(foreign(path, "a machine with the other byte order"));
    }
    if library.elf_header().e_type(library.endian()) != elf::ET_DYN {
        return Err(
            refused(path, "is an ELF file, but no library").suggest("add `cdylib` to the `crate-type` of the crate")
        );
    }
    Ok(())
}

/// Checks that the file contains all segments that loading maps.
fn check_segments(path: &Path, library: &Elf<'_>, cache: &ReadCache<File>) -> Result<()> {
    let length = cache.len().map_err(|()| damaged(path, "its length is not known"))?;
    for segment in library.elf_program_headers() {
        let (start, size) = segment.file_range(library.endian());
        if start.checked_add(size).is_none_or(|end| end > length) {
            return Err(damaged(path, &format!("a part of it is beyond its end, at {length} bytes")));
        }
    }
    Ok(())
}

fn declaration(path: &Path, library: &Elf<'_>) -> Result<Vec<u8>> {
    let name = |symbol: &object::read::elf::ElfSymbol64<'_, '_, Endianness, &ReadCache<File>>| {
        symbol.name().unwrap_or_default().to_owned()
    };
    let symbol = library.dynamic_symbols().find(|symbol| symbol.is_definition() && name(symbol) == DECLARATION_SYMBOL);
    let Some(symbol) = symbol else {
        let other = library.dynamic_symbols().map(|symbol| name(&symbol));
        let family = DECLARATION_SYMBOL.trim_end_matches(|letter: char| letter.is_ascii_digit());
        return Err(match other.into_iter().find(|name| name.starts_with(family)) {
            Some(other) => {
                let message = format!("`{}` speaks another ABI: it exports `{other}`", path.display());
                Error::new(ErrorCode::EXT_COMPAT, format!("{message}; this program looks for `{DECLARATION_SYMBOL}`"))
                    .suggest("build the library and the program with the same version of goondan")
            }
            None => refused(path, format!("is a library, but none of goondan: it exports no `{DECLARATION_SYMBOL}`"))
                .suggest("the crate depends on `goondan`, names it, and has `crate-type = [\"rlib\", \"cdylib\"]`"),
        });
    };
    let (address, size) = (symbol.address(), symbol.size().min(MAX_DECLARATION));
    let holds = |section: &object::read::elf::ElfSection64<'_, '_, Endianness, &ReadCache<File>>| {
        section.address() <= address && address < section.address().saturating_add(section.size())
    };
    // Sections of thread-local variables have no bytes in the file, and overlap others in memory.
    let mut sections = library.sections().filter(|section| section.address() != 0 && holds(section));
    let data = sections.find_map(|section| section.data_range(address, size).ok().flatten());
    data.map(<[u8]>::to_vec).ok_or_else(|| damaged(path, "its declaration is in none of its sections"))
}

fn records(path: &Path, library: &Elf<'_>) -> Result<Vec<u8>> {
    let Some(section) = library.section_by_name(RECORDS) else { return Ok(Vec::new()) };
    if section.size() > MAX_RECORDS {
        return Err(damaged(path, &format!("its records claim to be {} bytes long", section.size())));
    }
    section.data().map(<[u8]>::to_vec).map_err(|error| damaged(path, &format!("its records: {error}")))
}
