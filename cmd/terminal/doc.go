// Package terminal provides line editing, message history, word wrapping and safe output for terminals.
//
// [Editor] reads one message at a time, of one or more lines, with readline's keys. Pasted text becomes part of the
// message, including its line breaks. [History] keeps messages for later sessions in a file that only the user can
// read. [Wrapper] breaks a stream of text between words.
//
// [Output] filters untrusted text, such as text from an image, a registry or a model: the terminal displays it but does
// not interpret its control sequences. [Clean] and [Line] do the same for a string. Only [Output.Drawing], for the
// program's own sequences, bypasses the filter.
package terminal
