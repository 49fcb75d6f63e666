// Package ast parses the text of a template into a tree of statements and expressions.
//
// Parse works like jinja2's lexer and parser with trim_blocks and lstrip_blocks. Its recursion is bounded, and Measure
// bounds the depth of the tree, so that walking it is safe. Errors are *value.Error with a line. A tree is read-only
// and safe for concurrent use. Children gives the parts of a node in the order in which jinja2 visits them.
package ast
