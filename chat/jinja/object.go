package jinja

// What the value of an outer package can be, beside an identity: a macro, a loop, a cycler.
type (
	// object is a value with a type and attributes of its own.
	object interface {
		typeName() string
		// attr returns an attribute. The bool is false for an AttributeError.
		attr(r *run, name string) (Value, bool, error)
	}
	// callableObject is an object that can be called.
	callableObject interface {
		call(r *run, a *arguments) (Value, error)
	}
	// sized is an object with a length, which is also its truth.
	sized interface {
		length(r *run) (int64, error)
	}
	// iterableObject is an object that can be iterated.
	iterableObject interface {
		iterate() *iterator
	}
	// printed is an object with a repr of its own.
	printed interface {
		repr(r *run) (string, error)
	}
)
