//! A package of few dependencies: its tests let the compiler check all of them once more.
