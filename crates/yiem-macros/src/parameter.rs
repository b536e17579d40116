//! The parameters of a function: arguments, and the call's context.
//!
//! Knows: which parameters can be arguments, and what to say of those that cannot.
//! Does not know: the code that is made of them.

use syn::{Attribute, Error, FnArg, Ident, Pat, PatIdent, Result, Type, TypePath};

use crate::attribute::ArgAttribute;
use crate::text;

/// One parameter.
pub(crate) struct Parameter {
    /// Its name in the function.
    pub(crate) ident: Ident,
    pub(crate) ty: Box<Type>,
    pub(crate) kind: Kind,
}

pub(crate) enum Kind {
    /// The call's context.
    Context,
    /// An argument that the model gives.
    Argument(Box<Argument>),
}

pub(crate) struct Argument {
    /// Its name for the model.
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) attribute: ArgAttribute,
}

impl Parameter {
    /// Reads a parameter, and takes off it what only the macro understands.
    pub(crate) fn take(input: &mut FnArg) -> Result<Self> {
        let typed = match input {
            FnArg::Typed(typed) => typed,
            FnArg::Receiver(receiver) => {
                return Err(Error::new_spanned(
                    receiver,
                    "a tool is a function without `self`; give it what it needs by `context: ToolContext` and \
                     `context.dep::<T>()?`",
                ));
            }
        };
        let Pat::Ident(PatIdent {
            ident,
            by_ref: None,
            subpat: None,
            ..
        }) = &*typed.pat
        else {
            return Err(Error::new_spanned(
                &typed.pat,
                "a tool's parameter needs a name, by which the model gives it: write `name: Type`",
            ));
        };
        let ident = ident.clone();
        let attributes = std::mem::take(&mut typed.attrs);
        let (ours, others): (Vec<Attribute>, Vec<Attribute>) = attributes
            .into_iter()
            .partition(|a| a.path().is_ident("arg") || a.path().is_ident("doc"));
        typed.attrs = others;
        refuse_type(&typed.ty)?;
        let kind = if is_context(&typed.ty) {
            Kind::Context
        } else {
            Kind::Argument(Box::new(argument(&ident, &ours)?))
        };
        Ok(Self {
            ident,
            ty: typed.ty.clone(),
            kind,
        })
    }
}

fn argument(ident: &Ident, attributes: &[Attribute]) -> Result<Argument> {
    let mut attribute = ArgAttribute::default();
    for found in attributes.iter().filter(|a| a.path().is_ident("arg")) {
        attribute = found.parse_args()?;
    }
    let name = match &attribute.name {
        Some(name) if name.value().trim().is_empty() => {
            return Err(Error::new(name.span(), "an argument's name is not empty"));
        }
        Some(name) => name.value(),
        None => text::plain(ident),
    };
    let description = match &attribute.description {
        Some(description) => description.value(),
        None => text::doc_comment(attributes),
    };
    Ok(Argument {
        name,
        description,
        attribute,
    })
}

fn is_context(ty: &Type) -> bool {
    matches!(ty, Type::Path(TypePath { path, .. })
        if path.segments.last().is_some_and(|s| s.ident == "ToolContext"))
}

/// Arguments are made from JSON: what borrows or is no single type cannot be one.
fn refuse_type(ty: &Type) -> Result<()> {
    let text = match ty {
        Type::Reference(reference) => {
            let inner = &reference.elem;
            let owned = match &**inner {
                Type::Path(path) if path.path.is_ident("str") => "String".to_owned(),
                Type::Slice(slice) => {
                    let item = &slice.elem;
                    format!("Vec<{}>", quote::quote!(#item))
                }
                inner => quote::quote!(#inner).to_string(),
            };
            format!("a tool's parameter owns its value: write `{owned}`")
        }
        Type::ImplTrait(_) => {
            "a tool's parameter has one type, of which its schema is made: write that type in place of \
             `impl Trait`"
                .to_owned()
        }
        Type::TraitObject(_) | Type::FnPtr(_) | Type::Ptr(_) => {
            "a tool's parameter is made from JSON: write an owned type that implements `serde::Deserialize` and \
             `schemars::JsonSchema`"
                .to_owned()
        }
        _ => return Ok(()),
    };
    Err(Error::new_spanned(ty, text))
}
