//! The library `http-fetch`.
use http_fetch as _;
