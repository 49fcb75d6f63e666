package schema

import (
	"fmt"
	"math/big"
	"strings"

	"github.com/ingotml/ingot/grammar/expr"
	"github.com/ingotml/ingot/grammar/jsontext"
)

// maxDivisor is the largest divisor whose remainders digits can track.
const maxDivisor = 1000

// number matches the numbers of s. With limits or multipleOf, numbers have no exponent.
func (c *compiler) number(s *shape, path string) *expr.Expr {
	integers := s.types&typeFraction == 0
	if s.low == nil && s.high == nil && len(s.multiples) == 0 {
		if integers {
			return c.json.Integer()
		}
		return c.json.Number()
	}
	work := 20
	if !integers {
		work = 300
	}
	key := fmt.Sprint("number ", integers, s.low, s.high, s.multiples)
	return c.shared(key, path, work, func() *expr.Expr { return c.rangedNumber(s, integers, path) })
}

// rangedNumber matches the numbers of s if it has limits or divisors.
func (c *compiler) rangedNumber(s *shape, integers bool, path string) *expr.Expr {
	step, ok := commonMultiple(s.multiples)
	if !ok {
		c.fail(expr.ErrUnsupported, path, "multipleOf values whose least common multiple is too large")
		return expr.None
	}
	// One part per number of decimal places, up to what 32 characters leave after the digits of the limits.
	low, high := numberRange(s)
	if low.Cmp(high) > 0 {
		return expr.None // all numbers in the range have too many digits
	}
	whole := max(len(floor(new(big.Rat).Abs(low)).String()), len(floor(new(big.Rat).Abs(high)).String()))
	places := 0
	if !integers {
		places = min(20, jsontext.MaxNumber-2-whole)
	}
	var parts []*expr.Expr
	for f := 0; f <= places; f++ {
		scale := new(big.Rat).SetInt(power10(f))
		from, to := new(big.Rat).Mul(low, scale), new(big.Rat).Mul(high, scale)
		first, last := ceil(from), floor(to)
		if s.low != nil && s.low.exclusive && from.IsInt() && low == s.low.value {
			first.Add(first, big.NewInt(1))
		}
		if s.high != nil && s.high.exclusive && to.IsInt() && high == s.high.value {
			last.Sub(last, big.NewInt(1))
		}
		divisor := 1
		// m / 10^f is a multiple of p/q exactly if m is a multiple of p 10^f / q in lowest terms.
		if step != nil {
			d := new(big.Rat).Mul(step, scale).Num()
			if !d.IsInt64() || d.Int64() > maxDivisor {
				if f == 0 && integers {
					c.fail(expr.ErrUnsupported, path, "multipleOf %s is above %d for integers", step.RatString(), maxDivisor)
					return expr.None
				}
				continue
			}
			divisor = int(d.Int64())
		}
		parts = append(parts, fixedExpr(first, last, f, divisor))
	}
	if len(parts) == 0 {
		c.fail(expr.ErrUnsupported, path, "multipleOf %s is not a decimal fraction, or is above %d", step.RatString(),
			maxDivisor)
		return expr.None
	}
	return expr.Alt(parts...)
}

// numberRange returns the range of s, limited to 19 digits before the point.
func numberRange(s *shape) (low, high *big.Rat) {
	most := new(big.Rat).SetInt(new(big.Int).Sub(power10(jsontext.MaxDigits), big.NewInt(1)))
	low, high = new(big.Rat).Neg(most), most
	if s.low != nil && s.low.value.Cmp(low) > 0 {
		low = s.low.value
	}
	if s.high != nil && s.high.value.Cmp(high) < 0 {
		high = s.high.value
	}
	return low, high
}

func power10(n int) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil) }

func floor(r *big.Rat) *big.Int {
	return new(big.Int).Div(r.Num(), r.Denom()) // Euclidean; the denominator is positive
}

func ceil(r *big.Rat) *big.Int {
	q := floor(r)
	if !r.IsInt() {
		q.Add(q, big.NewInt(1))
	}
	return q
}

// commonMultiple returns the least common multiple of all, nil if there are none, and whether it is small enough.
func commonMultiple(all []*big.Rat) (*big.Rat, bool) {
	var common *big.Rat
	for _, r := range all {
		if common == nil {
			common = r
			continue
		}
		// lcm(a/b, c/d) = lcm(a, c) / gcd(b, d) in lowest terms
		g := new(big.Int).GCD(nil, nil, common.Num(), r.Num())
		n := new(big.Int).Mul(new(big.Int).Quo(common.Num(), g), r.Num())
		common = new(big.Rat).SetFrac(n, new(big.Int).GCD(nil, nil, common.Denom(), r.Denom()))
	}
	return common, common == nil || common.Num().BitLen() <= 64
}

// fixedExpr matches m / 10^places, with exactly that many decimal places, for all multiples m of divisor from first to
// last.
func fixedExpr(first, last *big.Int, places, divisor int) *expr.Expr {
	var parts []*expr.Expr
	zero, one := new(big.Int), big.NewInt(1)
	if first.Sign() < 0 {
		from, to := one, new(big.Int).Neg(first)
		if last.Sign() < 0 {
			from = new(big.Int).Neg(last)
		}
		parts = append(parts, expr.Seq(expr.Text("-"), digitsExpr(from, to, places, divisor)))
	}
	if last.Sign() >= 0 {
		from := zero
		if first.Sign() > 0 {
			from = first
		}
		parts = append(parts, digitsExpr(from, last, places, divisor))
	}
	return expr.Alt(parts...)
}

// digitsExpr is fixedExpr for non-negative numbers.
func digitsExpr(from, to *big.Int, places, divisor int) *expr.Expr {
	if from.Cmp(to) > 0 {
		return expr.None
	}
	shortest := places + 1
	w := &digitWriter{places: places, divisor: divisor, made: map[digitState]*expr.Expr{}}
	var parts []*expr.Expr
	for length := shortest; length <= max(shortest, len(to.String())); length++ {
		low, high := new(big.Int), new(big.Int).Sub(power10(length), big.NewInt(1))
		if length > shortest {
			low = power10(length - 1)
		}
		if low.Cmp(from) < 0 {
			low = from
		}
		if high.Cmp(to) > 0 {
			high = to
		}
		if low.Cmp(high) > 0 {
			continue
		}
		w.low, w.high = padded(low, length), padded(high, length)
		for k := range w.made { // exprs that do not depend on the limits remain valid
			if k.aboveLow || k.belowHigh {
				delete(w.made, k)
			}
		}
		parts = append(parts, w.rest(digitState{left: length, aboveLow: true, belowHigh: true}))
	}
	return expr.Alt(parts...)
}

func padded(n *big.Int, length int) string {
	s := n.String()
	return strings.Repeat("0", length-len(s)) + s
}

// digitWriter builds the digits of numbers of one length between low and high.
type digitWriter struct {
	low, high string
	places    int
	divisor   int
	made      map[digitState]*expr.Expr
}

// digitState is what decides the digits that are left.
type digitState struct {
	left                int
	aboveLow, belowHigh bool // the digits so far equal the limit's, so it still constrains the rest
	remainder           int  // of the digits so far
}

func (w *digitWriter) rest(at digitState) *expr.Expr {
	if at.left == 0 {
		if at.remainder != 0 {
			return expr.None
		}
		return expr.Empty
	}
	// A low limit whose other digits are all 0, or a high limit whose other digits are all 9, constrains nothing.
	at.aboveLow = at.aboveLow && strings.Trim(w.low[len(w.low)-at.left:], "0") != ""
	at.belowHigh = at.belowHigh && strings.Trim(w.high[len(w.high)-at.left:], "9") != ""
	if e, ok := w.made[at]; ok {
		return e
	}
	lo, hi := byte('0'), byte('9')
	if at.aboveLow {
		lo = w.low[len(w.low)-at.left]
	}
	if at.belowHigh {
		hi = w.high[len(w.high)-at.left]
	}
	var order []digitState
	sets := map[digitState]expr.ByteSet{}
	for d := lo; d <= hi; d++ {
		next := digitState{left: at.left - 1, aboveLow: at.aboveLow && d == lo, belowHigh: at.belowHigh && d == hi,
			remainder: (at.remainder*10 + int(d-'0')) % w.divisor}
		s, ok := sets[next]
		if !ok {
			order = append(order, next)
		}
		s.Add(d)
		sets[next] = s
	}
	var parts []*expr.Expr
	for _, next := range order {
		point := expr.Empty
		if next.left == w.places && w.places > 0 {
			point = expr.Text(".")
		}
		parts = append(parts, expr.Seq(expr.Set(sets[next]), point, w.rest(next)))
	}
	e := expr.Alt(parts...)
	w.made[at] = e
	return e
}
