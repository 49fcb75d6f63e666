// Package value has the values of a template and Python's operations on them: arithmetic, comparison, indexing,
// iteration, repr and JSON.
//
// Values are immutable once a template sees them, except namespaces, iterators and the objects of outer packages, and
// may be shared by concurrent renders. Operations whose cost depends on a template are methods of Run, which counts
// what a render has used of its Limits. Their errors are *Error with the kind of Python's exception, or the context's.
// A Run is not safe for concurrent use.
package value
