//! The allocator of a program that links this crate. Objects are trees of small allocations, often made in one thread
//! and freed in another: docs/src/reference/figures.md says what glibc's allocator costs there.

use mimalloc::MiMalloc;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;
