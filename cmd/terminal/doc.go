// Package terminal is what a conversation on a terminal needs: a message is edited and remembered, an answer wrapped.
//
// [Editor] reads one message at a time, of one line or several, with the keys that readline has; text that the terminal pastes is a part of
// the message, whatever lines it has. [History] keeps what was said for later sessions, for its user alone. [Wrapper] breaks a
// stream of text between words. What is drawn is what this package decided to draw: control characters of foreign text are left out.
package terminal
