//! Closures as hooks: one adapter per method of [`AgentHook`].

use std::future::Future;

use async_trait::async_trait;
use yiem_core::Error;

use super::{
    AfterToolCall, AgentHook, BeforeModelCall, BeforeToolCall, ContextView, HookPoint,
    ModelCallView, PrepareNextTurn, StopAfterTurn, ToolCallView, ToolResultView, TransformContext,
    TurnView,
};

macro_rules! closure_hook {
    ($(#[$doc:meta])* $method:ident, $point:ident, $adapter:ident, $view:ty, $answer:ty) => {
        $(#[$doc])*
        pub fn $method<F, Fut>(hook: F) -> impl AgentHook
        where
            F: Fn($view) -> Fut + Send + Sync + 'static,
            Fut: Future<Output = Result<$answer, Error>> + Send + 'static,
        {
            $adapter(hook)
        }

        struct $adapter<F>(F);

        #[async_trait]
        impl<F, Fut> AgentHook for $adapter<F>
        where
            F: Fn($view) -> Fut + Send + Sync + 'static,
            Fut: Future<Output = Result<$answer, Error>> + Send + 'static,
        {
            fn name(&self) -> &str {
                stringify!($method)
            }

            fn is_asked_at(&self, point: HookPoint) -> bool {
                point == HookPoint::$point
            }

            async fn $method(&self, view: $view) -> Result<$answer, Error> {
                (self.0)(view).await
            }
        }
    };
}

closure_hook!(
    /// A hook that only has [`AgentHook::transform_context`].
    transform_context, TransformContext, TransformContextFn, ContextView, TransformContext
);
closure_hook!(
    /// A hook that only has [`AgentHook::before_model_call`].
    before_model_call, BeforeModelCall, BeforeModelCallFn, ModelCallView, BeforeModelCall
);
closure_hook!(
    /// A hook that only has [`AgentHook::before_tool_call`].
    ///
    /// ```
    /// use yiem_agent::{before_tool_call, BeforeToolCall};
    /// let hook = before_tool_call(|view| async move {
    ///     Ok(if view.tool.name == "rm" {
    ///         BeforeToolCall::refuse("not here")
    ///     } else {
    ///         BeforeToolCall::Run
    ///     })
    /// });
    /// # let _ = hook;
    /// ```
    before_tool_call, BeforeToolCall, BeforeToolCallFn, ToolCallView, BeforeToolCall
);
closure_hook!(
    /// A hook that only has [`AgentHook::after_tool_call`].
    after_tool_call, AfterToolCall, AfterToolCallFn, ToolResultView, AfterToolCall
);
closure_hook!(
    /// A hook that only has [`AgentHook::should_stop_after_turn`].
    should_stop_after_turn, ShouldStopAfterTurn, ShouldStopAfterTurnFn, TurnView, StopAfterTurn
);
closure_hook!(
    /// A hook that only has [`AgentHook::prepare_next_turn`].
    prepare_next_turn, PrepareNextTurn, PrepareNextTurnFn, TurnView, PrepareNextTurn
);
