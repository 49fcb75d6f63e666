// Package number has the texts of JSON numbers as automata: a range, divisors and excluded values combine exactly.
//
// Contract: a Rule is a value; its methods do not keep it. Numbers with constraints have no exponent and at most 32
// characters, except multiples of large divisors, which have texts of any length. A divisor above 2000 is
// ErrUnsupported, an automaton with too many states ErrLimit.
package number

import (
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/ingotml/ingot/grammar/dfa"
	"github.com/ingotml/ingot/grammar/ecma"
	"github.com/ingotml/ingot/grammar/expr"
)

// maxDivisor is the largest divisor whose remainders digits can track.
const maxDivisor = 2000

// Bound is one end of a range of numbers.
type Bound struct {
	Value     *big.Rat
	Exclusive bool
}

// Rule is what a number must satisfy.
type Rule struct {
	Integers, Fractions     bool // which kinds of numbers are allowed
	Low, High               *Bound
	Multiples, NotMultiples []*big.Rat // divisors, above 0
	Excluded                []*big.Rat
}

// Free reports whether n allows all integers, in any text.
func (n *Rule) Free() bool {
	return n.Integers && n.Low == nil && n.High == nil && len(n.Multiples)+len(n.NotMultiples)+len(n.Excluded) == 0
}

// AtLeast and AtMost tighten the range.
func (n *Rule) AtLeast(b *Bound) {
	if n.Low == nil || b.Value.Cmp(n.Low.Value) > 0 || b.Exclusive && b.Value.Cmp(n.Low.Value) == 0 {
		n.Low = b
	}
}

func (n *Rule) AtMost(b *Bound) {
	if n.High == nil || b.Value.Cmp(n.High.Value) < 0 || b.Exclusive && b.Value.Cmp(n.High.Value) == 0 {
		n.High = b
	}
}

// Holds reports whether a number has the range and the divisors of n.
func (n *Rule) Holds(r *big.Rat) bool {
	if n.Low != nil {
		if d := r.Cmp(n.Low.Value); d < 0 || d == 0 && n.Low.Exclusive {
			return false
		}
	}
	if n.High != nil {
		if d := r.Cmp(n.High.Value); d > 0 || d == 0 && n.High.Exclusive {
			return false
		}
	}
	return !slices.ContainsFunc(n.Multiples, func(m *big.Rat) bool { return !new(big.Rat).Quo(r, m).IsInt() })
}

// Key identifies n.
func (n *Rule) Key() string {
	return fmt.Sprint("number ", n.Integers, n.Fractions, n.Low, n.High, n.Multiples, n.NotMultiples, n.Excluded)
}

func (b *Bound) String() string {
	if b == nil {
		return "none"
	}
	return fmt.Sprint(b.Value, b.Exclusive)
}

// Texts of at most 32 characters with at most 19 digits before the point.
const (
	integerPattern  = `-?[1-9][0-9]{0,18}|0`
	fractionPattern = `-?(?:0|[1-9][0-9]{0,9})(?:\.[0-9]{1,20})?|-?[1-9][0-9]{10,12}(?:\.[0-9]{1,17})?|` +
		`-?[1-9][0-9]{13,18}(?:\.[0-9]{1,11})?`
	// longPattern is for large divisors, whose remainders would multiply the states: texts have any length.
	longPattern  = `-?(?:0|[1-9][0-9]*)`
	wholePattern = `-?(?:0|[1-9][0-9]*)(?:\.0*)?` // an integer, also as a decimal
)

var constantPatterns = dfa.NewCache(func(pattern string) (*dfa.DFA, error) { return ecma.Whole(pattern) })

// digitClasses are the classes of the texts of numbers: the digits, the sign, the point, all others.
var digitClasses = func() []expr.RuneSet {
	var classes []expr.RuneSet
	for d := '0'; d <= '9'; d++ {
		classes = append(classes, expr.RuneSet{d, d})
	}
	classes = append(classes, expr.RuneSet{'-', '-'}, expr.RuneSet{'.', '.'})
	return append(classes, expr.RuneSetOf([]rune{'-', '.', '0', '9'}).Not())
}()

const (
	signClass  = 10
	pointClass = 11
)

// Language returns the texts of the numbers of n.
func (n *Rule) Language() (*dfa.DFA, error) {
	pattern := fractionPattern
	if !n.Fractions {
		pattern = integerPattern
	}
	if largest(n.Multiples) > 300 {
		pattern = longPattern
		if n.Fractions {
			pattern += `(?:\.[0-9]+)?`
		}
	}
	d, err := constantPatterns.Get(pattern)
	if err != nil {
		return nil, err
	}
	and := func(rule *dfa.DFA, ruleErr error) {
		if err == nil {
			err = ruleErr
		}
		if err == nil {
			d, err = dfa.Intersect(d, rule)
		}
	}
	minus := func(rule *dfa.DFA, ruleErr error) {
		if err == nil {
			err = ruleErr
		}
		if err == nil {
			d, err = dfa.Minus(d, rule)
		}
	}
	if !n.Integers {
		minus(constantPatterns.Get(wholePattern))
	}
	if n.Low != nil {
		and(compared(n.Low.Value, func(cmp int8) bool { return cmp > 0 || cmp == 0 && !n.Low.Exclusive }))
	}
	if n.High != nil {
		and(compared(n.High.Value, func(cmp int8) bool { return cmp < 0 || cmp == 0 && !n.High.Exclusive }))
	}
	for _, v := range n.Excluded {
		and(compared(v, func(cmp int8) bool { return cmp != 0 }))
	}
	for _, m := range n.Multiples {
		and(divisible(m))
	}
	for _, m := range n.NotMultiples {
		minus(divisible(m))
	}
	return d, err
}

// decimal returns the digits of a decimal fraction's absolute value, before and after the point, without needless
// zeros except one before the point.
func decimal(r *big.Rat) (whole, fraction string) {
	abs := new(big.Rat).Abs(r)
	places, _ := abs.FloatPrec() // JSON's numbers are exact decimals
	whole, fraction, _ = strings.Cut(abs.FloatString(places), ".")
	return whole, strings.TrimRight(fraction, "0")
}

// comparing is the state of a comparison of a text with a bound, digit by digit.
type comparing struct {
	negative, fraction bool
	at                 int  // digits of this part so far, no more than matter
	cmp                int8 // of the absolute values, as far as equal positions tell
}

// compared accepts the texts of numbers whose comparison with v is wanted.
func compared(v *big.Rat, wanted func(cmp int8) bool) (*dfa.DFA, error) {
	whole, fraction := decimal(v)
	// wholeCmp is the comparison after the whole part, which decides if its number of digits differs.
	wholeCmp := func(s comparing) int8 {
		switch {
		case s.at < len(whole):
			return -1
		case s.at > len(whole):
			return 1
		}
		return s.cmp
	}
	step := func(s comparing, class int) (comparing, bool) {
		switch class {
		case signClass:
			if s != (comparing{}) {
				return s, false
			}
			s.negative = true
			return s, true
		case pointClass:
			if s.fraction {
				return s, false
			}
			return comparing{negative: s.negative, fraction: true, cmp: wholeCmp(s)}, true
		case len(digitClasses) - 1:
			return s, false
		}
		part := whole
		if s.fraction {
			part = fraction
		}
		digit := byte('0')
		if s.at < len(part) {
			digit = part[s.at]
		}
		if s.cmp == 0 {
			s.cmp = int8(min(max('0'+class-int(digit), -1), 1))
		}
		switch {
		case s.fraction && s.cmp != 0:
			s.at = 0
		case s.at <= len(part):
			s.at++
		}
		return s, true
	}
	accept := func(s comparing) bool {
		cmp := s.cmp
		if !s.fraction {
			cmp = wholeCmp(s)
		}
		if cmp == 0 && fraction != "" && (!s.fraction || s.at < len(fraction)) {
			cmp = -1 // digits of the bound are left
		}
		switch {
		case v.Sign() < 0 && s.negative:
			cmp = -cmp
		case v.Sign() < 0:
			cmp = 1
		case s.negative && (v.Sign() > 0 || cmp != 0):
			cmp = -1
		}
		return wanted(cmp)
	}
	return dfa.Explore(digitClasses, comparing{}, step, accept)
}

// dividing is the state of a division of a text, digit by digit.
type dividing struct {
	places    int // digits after the point; -1: before it
	remainder int
}

// factor returns step as divisor / 10^places, or divisor * 10^zeros.
func factor(step *big.Rat) (divisor *big.Int, places, zeros int) {
	places, _ = step.FloatPrec()
	scaled := new(big.Rat).Mul(step, new(big.Rat).SetInt(power10(places)))
	divisor = new(big.Int).Set(scaled.Num())
	for ten, rest := big.NewInt(10), new(big.Int); places == 0; zeros++ {
		q, _ := new(big.Int).QuoRem(divisor, ten, rest)
		if rest.Sign() != 0 {
			break
		}
		divisor = q
	}
	return divisor, places, zeros
}

// largest returns the largest divisor of all steps.
func largest(steps []*big.Rat) (most int64) {
	for _, s := range steps {
		if d, _, _ := factor(s); d.IsInt64() {
			most = max(most, d.Int64())
		}
	}
	return most
}

// divisible accepts the texts of numbers that are multiples of step.
func divisible(step *big.Rat) (*dfa.DFA, error) {
	divisor, places, zeros := factor(step)
	if !divisor.IsInt64() || divisor.Int64() > maxDivisor {
		return nil, expr.Errorf(expr.ErrUnsupported, "the keyword multipleOf: %s has a factor above %d", step.RatString(),
			maxDivisor)
	}
	by := int(divisor.Int64())
	d, err := dfa.Explore(digitClasses, dividing{places: -1}, func(s dividing, class int) (dividing, bool) {
		switch {
		case class == signClass:
			return s, true // the language of numbers has it at the beginning only
		case class == pointClass:
			return dividing{0, s.remainder}, s.places < 0
		case class > 9 || s.places == places && class > 0:
			return s, false
		case s.places == places:
			return s, true
		case s.places >= 0:
			s.places++
		}
		s.remainder = (s.remainder*10 + class) % by
		return s, true
	}, func(s dividing) bool {
		r := s.remainder
		for range places - max(s.places, 0) {
			r = r * 10 % by
		}
		return r == 0
	})
	if err != nil || zeros == 0 {
		return d, err
	}
	point := dfa.Repeat(dfa.Cat(dfa.Literal("."), dfa.Repeat(dfa.Literal("0"), 1, -1)), 0, 1)
	zero := dfa.Cat(dfa.Repeat(dfa.Literal("-"), 0, 1), dfa.Literal("0"), point)
	whole, err := dfa.Intersect(d, mustDigits())
	if err != nil {
		return nil, err
	}
	return dfa.Compile(dfa.Alt(zero, dfa.Cat(dfa.Machine(whole), dfa.Literal(strings.Repeat("0", zeros)), point)))
}

// mustDigits accepts whole numbers.
func mustDigits() *dfa.DFA {
	d, _ := constantPatterns.Get(`-?[0-9]+`) // a valid pattern
	return d
}

func power10(n int) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil) }
