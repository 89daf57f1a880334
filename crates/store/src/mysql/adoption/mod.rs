//! Tables of other programs in MySQL and MariaDB, and of older ones of ours: what they lack, and whether their values
//! fit. Text alone; `migration::adopt` asks and runs.

pub(crate) mod definition;

pub(crate) mod unfit;

pub(crate) mod alter;

pub(crate) mod questions;

pub(crate) mod checks;
