// Package processor holds the parts of a model that do not need the engine: its configuration and tokenizer, the
// defaults of requests, and how texts and pictures become a prompt.
//
// A [Processor] is read from the small files of an image ([Files]); weights are not opened. Its methods are safe for
// concurrent use. The server has one for each model, and the child process that runs the model has another, so both
// agree on prompts and their lengths.
package processor
