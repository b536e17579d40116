//! Tools made of JavaScript files, and the tool that writes them.
