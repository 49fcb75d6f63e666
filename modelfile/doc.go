// Package modelfile reads and writes Modelfiles, the line-based language that says what a model image is made of.
//
//	# a comment: only at the start of a line
//	FROM ./checkpoint
//	PARAMETER temperature 0.7
//	SYSTEM """text over
//	several lines"""
//
// A line is a command, in any case, and its value: the rest of the line without outer blanks, or a quoted text. A quoted
// text starts with ", ' or """ and ends where that quote ends a line, so quotes inside a line need no escape; there are
// no escapes. PARAMETER and MESSAGE take a name or a role before the value. Files are UTF-8, or UTF-16 with a byte order
// mark; lines end in LF or CRLF.
//
// Parsing checks the grammar, the names of commands, parameters and roles, and the types and ranges of parameters. It
// reads no other file. Every error is an [*Error] with line, column and the text it is about.
package modelfile
