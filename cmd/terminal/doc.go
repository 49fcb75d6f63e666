// Package terminal is what a conversation on a terminal needs: a message is edited and remembered, an answer wrapped.
//
// [Editor] reads one message at a time, of one line or several, with the keys that readline has; text that the terminal pastes is a part of
// the message, whatever lines it has. [History] keeps what was said for later sessions, for its user alone. [Wrapper] breaks a
// stream of text between words.
//
// [Output] is the filter between foreign text and the terminal: what an image, a registry or a model says is shown, and never obeyed.
// [Clean] and [Line] do the same to a string. Only [Output.Drawing], for sequences of the program itself, goes around it.
package terminal
