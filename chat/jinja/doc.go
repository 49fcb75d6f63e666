// Package jinja renders chat templates in Jinja, compatible with the sandbox of Hugging Face transformers.
//
// The reference, which comments name so, is jinja2 3.1.6 on Python 3.11 in the environment that transformers 5.23
// creates for chat templates: ImmutableSandboxedEnvironment with trim_blocks, lstrip_blocks, loop controls, the
// generation tag, its own tojson filter, raise_exception and strftime_now.
//
// That environment has no loader and does not escape, so no chat template needs the tags autoescape, block, extends,
// from, import and include, the filters e, escape, forceescape, striptags, urlize and xmlattr, the test escaped or the
// function lipsum. Nor does a published template lay out a page for people: the filters batch, center, filesizeformat,
// groupby, pprint, random, slice, urlencode, wordcount and wordwrap and the function cycler are left out, too. Each is
// an error that names it. The filter safe returns a string.
//
// Values behave like Python's: objects keep the order of their keys, integers have arbitrary size, strings are indexed
// by code point, and str() and repr() return what Python returns. Lone surrogates, which UTF-8 cannot encode, become
// U+FFFD.
//
// Templates are untrusted: Limits bound steps, depth, output and memory, and a cancelled context ends a render. A
// compiled Template is safe for concurrent use.
//
// This package compiles the tree of chat/jinja/ast to code and runs it. Beneath it are chat/jinja/builtin (filters,
// tests, methods and functions), chat/jinja/format (format strings) and chat/jinja/value (values, their operations and
// the limits). Callers need this package alone.
package jinja
