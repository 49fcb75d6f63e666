// Package format writes values by format strings, as Python does: % and str.format with its format specifications, and
// strftime.
//
// All text that it makes counts against the limits of the run. Errors are *value.Error with the kind of Python's
// exception. Fields reads attributes and items only through the Lookup that it is given, so the sandbox decides what a
// format string can reach.
package format
