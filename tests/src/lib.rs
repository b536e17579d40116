//! Whole-stack tests.
