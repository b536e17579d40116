//! Test kit: a scripted model, a manual clock, fake servers, conformance suites.
