//! The library `validate`.
use validate as _;
