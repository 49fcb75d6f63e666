package value

import (
	"math/big"
	"strconv"

	"github.com/ingotml/ingot/grammar/expr"
	"github.com/ingotml/ingot/grammar/jsontext"
)

// Spellings returns the accepted texts of a scalar: strings unescaped, and with all non-ASCII characters escaped;
// numbers as given, and as an integer or a decimal.
func (v *Value) Spellings() []string {
	plain := string(v.Dump(nil, false))
	out := []string{plain}
	switch v.Kind {
	case String:
		if ascii := string(v.Dump(nil, true)); ascii != plain {
			out = append(out, ascii)
		}
	case AnyNumber:
		r, ok := v.Rational()
		if !ok {
			break
		}
		if text, ok := decimalText(r); ok && text != plain {
			out = append(out, text)
		}
	}
	return out
}

// decimalText returns a number without an exponent, or false if it is long.
func decimalText(r *big.Rat) (string, bool) {
	places, exact := r.FloatPrec()
	text := r.FloatString(places)
	return text, exact && len(text) <= jsontext.MaxNumber
}

// Expr matches an array or an object.
func Expr(v *Value) *expr.Expr {
	var parts []*expr.Expr
	for i, item := range v.Items {
		if i > 0 {
			parts = append(parts, expr.Text(", "))
		}
		if v.Kind == Object {
			parts = append(parts, expr.Words(Text(v.Keys[i]).Spellings()), expr.Text(": "))
		}
		if item.Kind == Array || item.Kind == Object {
			parts = append(parts, Expr(item))
		} else {
			parts = append(parts, expr.Words(item.Spellings()))
		}
	}
	if v.Kind == Array {
		return expr.Seq(expr.Text("["), expr.Seq(parts...), expr.Text("]"))
	}
	return expr.Seq(expr.Text("{"), expr.Seq(parts...), expr.Text("}"))
}

// Dump appends v as json.dumps writes it; ascii is its ensure_ascii option, which is Python's default.
func (v *Value) Dump(b []byte, ascii bool) []byte {
	switch v.Kind {
	case Null:
		return append(b, "null"...)
	case Boolean:
		return strconv.AppendBool(b, v.Truth)
	case AnyNumber:
		return append(b, v.Text...)
	case String:
		return jsontext.AppendString(b, v.Text, ascii)
	case Array:
		b = append(b, '[')
		for i, item := range v.Items {
			if i > 0 {
				b = append(b, ", "...)
			}
			b = item.Dump(b, ascii)
		}
		return append(b, ']')
	}
	b = append(b, '{')
	for i, item := range v.Items {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = jsontext.AppendString(b, v.Keys[i], ascii)
		b = append(b, ": "...)
		b = item.Dump(b, ascii)
	}
	return append(b, '}')
}
