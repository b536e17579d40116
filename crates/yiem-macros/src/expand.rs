//! The code that `#[tool]` stands for.
//!
//! Knows: how a function becomes a unit struct that is a tool. Does not know: how schemas are
//! made and results turned; the crate that it names does that.

use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Error, ItemFn, Path, Result, ReturnType, Type};

use crate::attribute::{ArgDefault, ToolAttribute};
use crate::parameter::{Argument, Kind, Parameter};
use crate::text;

/// The tool, or the errors together with the function as it was, so that whoever calls it is
/// not told of a missing name as well.
pub(crate) fn expand(attribute: TokenStream, item: TokenStream, krate: &str) -> TokenStream {
    let function = match syn::parse2::<ItemFn>(item.clone()) {
        Ok(function) => function,
        Err(_) => {
            let error =
                Error::new_spanned(&item, "`#[tool]` stands on a function: write `async fn`");
            let error = error.to_compile_error();
            return quote!(#error #item);
        }
    };
    let kept = as_it_was(&function);
    tool(attribute, function, krate).unwrap_or_else(|error| {
        let error = error.to_compile_error();
        quote!(#error #kept)
    })
}

/// A refused function beside the unit struct that it should have become: so that the compiler
/// tells of what is wrong, and not of names that are missing because of it.
fn as_it_was(function: &ItemFn) -> TokenStream {
    let mut function = function.clone();
    if function.sig.receiver().is_some() {
        return TokenStream::new();
    }
    let (name, vis) = (function.sig.ident.clone(), function.vis.clone());
    for input in &mut function.sig.inputs {
        if let syn::FnArg::Typed(typed) = input {
            typed
                .attrs
                .retain(|a| !a.path().is_ident("arg") && !a.path().is_ident("doc"));
        }
    }
    quote! {
        #[allow(non_camel_case_types, dead_code)]
        #vis struct #name;

        #[allow(dead_code, unused)]
        const _: () = {
            #function
        };
    }
}

fn tool(attribute: TokenStream, mut function: ItemFn, krate: &str) -> Result<TokenStream> {
    let attribute: ToolAttribute = syn::parse2(attribute)?;
    check_signature(&function, &attribute)?;
    let output = result_type(&function)?.clone();
    let mut parameters = Vec::new();
    let mut errors: Option<Error> = None;
    for input in &mut function.sig.inputs {
        match Parameter::take(input) {
            Ok(parameter) => parameters.push(parameter),
            Err(error) => match &mut errors {
                Some(errors) => errors.combine(error),
                None => errors = Some(error),
            },
        }
    }
    if let Some(errors) = errors {
        return Err(errors);
    }
    check_names(&parameters)?;

    let krate: Path = match &attribute.krate {
        Some(path) => path.clone(),
        None => syn::parse_str(krate)?,
    };
    let yiem = quote!(#krate::__private);
    let name = function.sig.ident.clone();
    let vis = std::mem::replace(&mut function.vis, syn::Visibility::Inherited);
    let (docs, others): (Vec<_>, Vec<_>) = std::mem::take(&mut function.attrs)
        .into_iter()
        .partition(|a| a.path().is_ident("doc"));
    let (conditions, others): (Vec<_>, Vec<_>) =
        others.into_iter().partition(|a| a.path().is_ident("cfg"));
    function.attrs = others;

    let definition = definition(
        &attribute,
        &name,
        &text::doc_comment(&docs),
        &parameters,
        &output,
        &yiem,
    );
    let hooks = hooks(&attribute, &yiem);
    let call = call(&function, &parameters, &yiem);
    let deref = deref(&function, &name, &parameters, &output, &yiem);

    Ok(quote! {
        #(#conditions)*
        #(#docs)*
        #[allow(non_camel_case_types)]
        #[derive(Clone, Copy, Debug, Default)]
        #vis struct #name;

        #(#conditions)*
        const _: () = {
            #function

            #[#yiem::async_trait]
            impl #yiem::Tool for #name {
                fn definition(&self) -> &#yiem::Arc<#yiem::ToolDefinition> {
                    static DEFINITION: #yiem::OnceLock<#yiem::Arc<#yiem::ToolDefinition>> =
                        #yiem::OnceLock::new();
                    DEFINITION.get_or_init(|| #definition)
                }

                #hooks

                async fn call(
                    &self,
                    args: #yiem::ValidArgs,
                    context: #yiem::ToolContext,
                ) -> ::core::result::Result<#yiem::ToolOutput, #yiem::ToolError> {
                    #call
                }
            }

            #deref
        };
    })
}

fn check_signature(function: &ItemFn, attribute: &ToolAttribute) -> Result<()> {
    let signature = &function.sig;
    if signature.asyncness.is_none() && !attribute.blocking {
        return Err(Error::new(
            signature.fn_token.span(),
            "a tool is an `async fn`: write `async fn`, or `#[tool(blocking)]` for a plain `fn` whose work blocks",
        ));
    }
    if let Some(parameter) = signature.generics.params.first() {
        return Err(Error::new_spanned(
            parameter,
            "a tool has one type for each parameter, of which its schema is made: write it without generics and \
             lifetimes",
        ));
    }
    if let syn::Safety::Unsafe(token) = &signature.safety {
        return Err(Error::new_spanned(
            token,
            "a tool is called by a model: it cannot be `unsafe`",
        ));
    }
    Ok(())
}

/// The type that the function returns, which has to be a `Result`.
fn result_type(function: &ItemFn) -> Result<&Type> {
    let advice = "an `Err` is what the model reads when the tool fails";
    match &function.sig.output {
        ReturnType::Default => Err(Error::new(
            function.sig.paren_token.span.close(),
            format!("a tool returns a `Result`: write `-> Result<()>`; {advice}"),
        )),
        ReturnType::Type(_, ty) => {
            let is_result = matches!(&**ty, Type::Path(path)
                if path.path.segments.last().is_some_and(|s| s.ident.to_string().ends_with("Result")));
            let written = quote!(#ty).to_string();
            if written.contains("impl ") {
                return Err(Error::new_spanned(
                    ty,
                    "a tool has one type of result: write it in place of `impl Trait`",
                ));
            }
            if is_result {
                return Ok(ty);
            }
            Err(Error::new_spanned(
                ty,
                format!("a tool returns a `Result`: write `-> Result<{written}>`; {advice}"),
            ))
        }
    }
}

fn check_names(parameters: &[Parameter]) -> Result<()> {
    let mut seen: Vec<&str> = Vec::new();
    let mut contexts = 0;
    for parameter in parameters {
        match &parameter.kind {
            Kind::Context => {
                contexts += 1;
                if contexts > 1 {
                    return Err(Error::new(parameter.ident.span(), "a tool has one context"));
                }
            }
            Kind::Argument(argument) => {
                if seen.contains(&argument.name.as_str()) {
                    let text = format!("two arguments are named {:?}", argument.name);
                    return Err(Error::new(parameter.ident.span(), text));
                }
                seen.push(&argument.name);
            }
        }
    }
    Ok(())
}

fn arguments(parameters: &[Parameter]) -> impl Iterator<Item = (&Parameter, &Argument)> {
    parameters
        .iter()
        .filter_map(|parameter| match &parameter.kind {
            Kind::Argument(argument) => Some((parameter, &**argument)),
            Kind::Context => None,
        })
}

fn definition(
    attribute: &ToolAttribute,
    function: &syn::Ident,
    docs: &str,
    parameters: &[Parameter],
    output: &Type,
    yiem: &TokenStream,
) -> TokenStream {
    let own_name = text::plain(function);
    let name = attribute
        .name
        .as_ref()
        .map_or_else(|| own_name.clone(), syn::LitStr::value);
    let label = attribute
        .label
        .as_ref()
        .map_or_else(|| text::label(&name), syn::LitStr::value);
    let description = attribute
        .description
        .as_ref()
        .map_or_else(|| docs.to_owned(), syn::LitStr::value);
    let properties = arguments(parameters).map(|(parameter, argument)| {
        let ty = &parameter.ty;
        let (name, description) = (&argument.name, &argument.description);
        let default = match &argument.attribute.default {
            None => quote!(::core::option::Option::None),
            Some(default) => {
                let value = default_value(default, ty);
                quote! {
                    ::core::option::Option::Some({
                        #[allow(unused_imports)]
                        use #yiem::kind::*;
                        let value: #ty = #value;
                        (&&#yiem::Wrap::of(&value)).yiem_json().write(value)
                    })
                }
            }
        };
        quote_spanned! { ty.span() =>
            schema.property::<#ty>(#name, #description, #default);
        }
    });
    let mut settings = Vec::new();
    if let Some(parallel) = attribute.parallel {
        settings.push(quote!(definition.parallel = ::core::option::Option::Some(#parallel);));
    }
    if attribute.blocking {
        settings.push(quote!(definition.blocking = true;));
    }
    if attribute.needs_approval {
        settings.push(quote!(definition.needs_approval = true;));
    }
    if attribute.replay_safe {
        settings.push(quote!(definition.replay = #yiem::Replay::Safe;));
    }
    if attribute.strict {
        settings.push(quote!(definition.strict = ::core::option::Option::Some(true);));
    }
    if let Some(millis) = attribute.timeout_millis {
        settings.push(quote! {
            definition.limits.time = ::core::option::Option::Some(::core::time::Duration::from_millis(#millis));
        });
    }
    if let Some(bytes) = &attribute.result_bytes {
        settings
            .push(quote!(definition.limits.result_bytes = ::core::option::Option::Some(#bytes);));
    }
    if let Some(calls) = &attribute.concurrency {
        settings
            .push(quote!(definition.limits.concurrency = ::core::option::Option::Some(#calls);));
    }
    if attribute.output_schema {
        settings.push(quote_spanned! { output.span() =>
            definition.output_schema =
                ::core::option::Option::Some(#yiem::output_schema::<<#output as #yiem::ResultType>::Value>());
        });
    }
    quote! {{
        #[allow(unused_mut)]
        let mut schema = #yiem::ArgsSchema::new();
        #(#properties)*
        #[allow(unused_mut)]
        let mut definition = #yiem::ToolDefinition {
            name: #yiem::String::from(#name),
            label: #yiem::String::from(#label),
            description: #yiem::String::from(#description),
            input_schema: schema.finish(),
            ..::core::default::Default::default()
        };
        #(#settings)*
        #yiem::Arc::new(definition)
    }}
}

/// The value of a default as an expression of the parameter's type.
fn default_value(default: &ArgDefault, ty: &Type) -> TokenStream {
    match default {
        ArgDefault::OfType(span) => {
            quote_spanned!(*span => <#ty as ::core::default::Default>::default())
        }
        ArgDefault::Value(expression) => {
            let is_text =
                matches!(&**expression, syn::Expr::Lit(lit) if matches!(lit.lit, syn::Lit::Str(_)));
            if is_text {
                quote_spanned!(expression.span() => ::core::convert::Into::<#ty>::into(#expression))
            } else {
                quote!(#expression)
            }
        }
    }
}

fn hooks(attribute: &ToolAttribute, yiem: &TokenStream) -> TokenStream {
    let prepare = attribute.prepare.as_ref().map(|path| {
        quote! {
            async fn prepare_arguments(
                &self,
                args: #yiem::JsonObject,
            ) -> ::core::result::Result<#yiem::JsonObject, #yiem::ToolError> {
                let prepare: fn(#yiem::JsonObject) -> ::core::result::Result<#yiem::JsonObject, #yiem::ToolError> =
                    #path;
                prepare(args)
            }
        }
    });
    let validate = attribute.validate.as_ref().map(|path| {
        quote! {
            async fn validate_required_args(&self, args: &#yiem::JsonObject) -> #yiem::ArgsCheck {
                let validate: fn(&#yiem::JsonObject) -> ::core::option::Option<#yiem::String> = #path;
                match validate(args) {
                    ::core::option::Option::None => #yiem::ArgsCheck::Accept,
                    ::core::option::Option::Some(text) => #yiem::ArgsCheck::Reject(text),
                }
            }
        }
    });
    let any = prepare.is_some() || validate.is_some();
    quote! {
        fn has_own_checks(&self) -> bool {
            #any
        }
        #prepare
        #validate
    }
}

fn call(function: &ItemFn, parameters: &[Parameter], yiem: &TokenStream) -> TokenStream {
    let name = &function.sig.ident;
    let any = arguments(parameters).next().is_some();
    let locals: Vec<_> = (0..parameters.len())
        .map(|i| format_ident!("__argument_{i}"))
        .collect();
    let takes = parameters
        .iter()
        .zip(&locals)
        .filter_map(|(parameter, local)| {
            let Kind::Argument(argument) = &parameter.kind else {
                return None;
            };
            let (ty, name) = (&parameter.ty, &argument.name);
            let absent = match &argument.attribute.default {
                None => quote!(::core::option::Option::None),
                Some(default) => {
                    let value = default_value(default, ty);
                    quote!(::core::option::Option::Some(|| #value))
                }
            };
            Some(quote! {
                let #local: #ty = #yiem::take_argument::<#ty>(&mut args, #name, #absent)?;
            })
        });
    let passed = parameters
        .iter()
        .zip(&locals)
        .map(|(parameter, local)| match &parameter.kind {
            Kind::Context => quote!(context),
            Kind::Argument(_) => quote!(#local),
        });
    let args = if any {
        quote!(let mut args = args.into_object();)
    } else {
        quote!(let _ = args;)
    };
    let unused = (!parameters.iter().any(|p| matches!(p.kind, Kind::Context)))
        .then(|| quote!(let _ = context;));
    let awaited = function.sig.asyncness.map(|_| quote!(.await));
    quote! {
        #args
        #(#takes)*
        #unused
        let result = #name(#(#passed),*) #awaited;
        #[allow(unused_imports)]
        use #yiem::kind::*;
        let value = (&&&&#yiem::Wrap::of(&result)).yiem_result().split(result)?;
        (&&&#yiem::Wrap::of(&value)).yiem_output().convert(value)
    }
}

/// Keeps the struct callable as the function that it was.
fn deref(
    function: &ItemFn,
    name: &syn::Ident,
    parameters: &[Parameter],
    output: &Type,
    yiem: &TokenStream,
) -> TokenStream {
    let types: Vec<_> = parameters.iter().map(|p| &p.ty).collect();
    let locals: Vec<_> = (0..parameters.len())
        .map(|i| format_ident!("__argument_{i}"))
        .collect();
    let (result, body) = if function.sig.asyncness.is_some() {
        (
            quote!(#yiem::BoxFuture<'static, #output>),
            quote!(#yiem::Box::pin(#name(#(#locals),*))),
        )
    } else {
        (quote!(#output), quote!(#name(#(#locals),*)))
    };
    quote! {
        #[allow(clippy::too_many_arguments, clippy::type_complexity)]
        impl ::core::ops::Deref for #name {
            type Target = fn(#(#types),*) -> #result;

            fn deref(&self) -> &Self::Target {
                fn boxed(#(#locals: #types),*) -> #result {
                    #body
                }
                const FUNCTION: fn(#(#types),*) -> #result = boxed;
                &FUNCTION
            }
        }
    }
}
