//! The opaque error for `main`, hooks and tools' insides.
//!
//! Knows: how to take in any error and how to print its causes.
//! Does not know: kinds. Where a caller decides, there is a typed error instead.

use std::fmt;

/// A source error as it is kept: boxed, sendable, of whatever type.
pub type BoxError = Box<dyn std::error::Error + Send + Sync + 'static>;

/// Any error, for `main` and hooks: taken in by `?`, printed with its causes.
///
/// `Display` prints the outermost message, `Debug` the message and every cause on a line of
/// its own (so that `fn main() -> yiem::Result<()>` tells the whole story).
/// It is not itself a `std::error::Error`, else `?` could not take in every error;
/// [`Error::into_boxed`] turns it into one.
pub struct Error(BoxError);

/// A result whose error is the opaque [`Error`] unless another is named.
pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Debug)]
struct Text(String);

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Text {}

#[derive(Debug)]
struct Context {
    message: String,
    source: BoxError,
}

impl fmt::Display for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Context {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&*self.source)
    }
}

impl Error {
    /// An error that is only a text.
    pub fn msg(message: impl Into<String>) -> Self {
        Self(Box::new(Text(message.into())))
    }

    /// The same error under a message that says what was being done.
    #[must_use]
    pub fn context(self, message: impl Into<String>) -> Self {
        Self(Box::new(Context {
            message: message.into(),
            source: self.0,
        }))
    }

    /// The error inside, if it is of type `E`.
    #[must_use]
    pub fn downcast_ref<E: std::error::Error + 'static>(&self) -> Option<&E> {
        self.0.downcast_ref::<E>()
    }

    /// This error and its causes, outermost first.
    pub fn chain(&self) -> impl Iterator<Item = &(dyn std::error::Error + 'static)> {
        let first: &(dyn std::error::Error + 'static) = &*self.0;
        std::iter::successors(Some(first), |e| e.source())
    }

    /// The boxed error inside, for an API that wants a `std::error::Error`.
    #[must_use]
    pub fn into_boxed(self) -> BoxError {
        self.0
    }
}

impl<E> From<E> for Error
where
    E: std::error::Error + Send + Sync + 'static,
{
    fn from(error: E) -> Self {
        Self(Box::new(error))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut said = self.0.to_string();
        f.write_str(&said)?;
        for cause in self.chain().skip(1).map(ToString::to_string) {
            // A cause that its effect has told already is not told again.
            if !said.contains(&cause) {
                write!(f, "\n  caused by: {cause}")?;
                said = cause;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
