//! Between Yiem's messages and the OpenAI chat format, with an HTTP model.
