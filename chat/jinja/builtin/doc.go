// Package builtin has the filters, tests, methods and functions that every template can use, and access to attributes
// and items within the sandbox.
//
// Filter, Test and Global find them by name in tables that are filled at start and then read-only. Attributes and
// methods that would change a value, or show Python itself, are undefined values that fail when they are used. All work
// counts against the limits of the run that a call is given.
package builtin
