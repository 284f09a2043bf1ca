//! CRASH-01, through the seam to the disk: agents run several turns while `recorder` records each disk operation.
//! From this record, `image` computes every state (an image) that a crash of the process or of the machine could
//! leave on the disk, and `crashes` opens each one and checks it.

mod agents;
mod cost;
mod crashes;
mod faults;
mod image;
mod recorder;
mod shared;
mod turns;
