// Package modelfile parses and formats Modelfiles, the line-based language that describes a model image.
//
//	# a comment: only at the start of a line
//	FROM ./checkpoint
//	PARAMETER temperature 0.7
//	SYSTEM """text over
//	several lines"""
//
// A line is a command, in any case, and a value. The value is the rest of the line without surrounding blanks, or a
// quoted text. A quoted text starts with " or """ and ends where that quote ends a line. Quotes inside a line therefore
// need no escaping, and there are no escape sequences. Single quotes are text, as they are for Ollama. PARAMETER takes
// a name before the value, and MESSAGE a role. Files are UTF-8, or UTF-16 with a byte order mark. Lines end in LF, CRLF
// or CR.
//
// Parsing checks the grammar, the names of commands, parameters and roles, and the types and ranges of parameters. It
// reads no other file. Every error is an [*Error] with the line, the column and the offending text.
package modelfile
