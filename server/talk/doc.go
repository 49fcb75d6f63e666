// Package talk stands between conversations and a model: it makes a request's prompt of messages by the model's chat template, and takes
// the text of the answer apart into what is said, what was thought, and calls of tools.
//
// It needs no engine. The command line and the server's faces use it alike, so that one conversation gives one prompt, whoever sends
// it: what a prefix cache keeps of one is good for the other.
package talk
