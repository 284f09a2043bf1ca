//! The extensions as a library.
use recipes as _;
