//! The library `changesets`.
use changesets as _;
