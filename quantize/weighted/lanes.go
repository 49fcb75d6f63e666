package weighted

// lanes are partial sums: lane i has the terms of the columns i, i+4, i+8 and so on. A vector register holds four, so
// the sums are the same with and without vectors.
type lanes [4]float64

func (l lanes) sum() float64 { return (l[0] + l[1]) + (l[2] + l[3]) }

// round rounds to the nearest integer, ties to even: 1.5*2^52 has no bits for fractions.
func round(v float64) float64 { return v + 0x1.8p52 - 0x1.8p52 }

// sums returns the sums of d*q, d*q*q and d*x*q over a group, where q are the codes nearest to x. The number of columns
// is a multiple of 4.
func sums(x, d []float64, bias, by, limit float64) (q, qq, xq float64) {
	var out [3]lanes
	if hasAVX2 {
		sumsAVX2(&out, &x[0], &d[0], len(x), bias, by, limit)
	} else {
		sumsGo(&out, x, d, bias, by, limit)
	}
	return out[0].sum(), out[1].sum(), out[2].sum()
}

func sumsGo(out *[3]lanes, x, d []float64, bias, by, limit float64) {
	for i, v := range x {
		n := min(max(round(float64((v-bias)*by)), 0), limit)
		dq, dx := float64(d[i]*n), float64(d[i]*v)
		out[0][i&3] += dq
		out[1][i&3] += float64(dq * n)
		out[2][i&3] += float64(dx * n)
	}
}

// distance returns the sum of d*(x-value)^2 over a group, where value is that of the code nearest to x. The number of
// columns is a multiple of 4.
func distance(x, d []float64, bias, scale, by, limit float64) float64 {
	var out lanes
	if hasAVX2 {
		distanceAVX2(&out, &x[0], &d[0], len(x), bias, scale, by, limit)
	} else {
		distanceGo(&out, x, d, bias, scale, by, limit)
	}
	return out.sum()
}

func distanceGo(out *lanes, x, d []float64, bias, scale, by, limit float64) {
	for i, v := range x {
		n := min(max(round(float64((v-bias)*by)), 0), limit)
		e := v - bias - float64(scale*n)
		out[i&3] += float64(float64(d[i]*e) * e)
	}
}

// move subtracts from each element of later the products of e and a column of u: later[j] -= e[i]*u[i*stride+j] for
// each i in order. The number of columns is a multiple of 4.
func move(later, u []float64, stride int, e []float64) {
	if len(later) == 0 || len(e) == 0 {
		return
	}
	_ = u[(len(e)-1)*stride+len(later)-1]
	if hasAVX2 {
		moveAVX2(&later[0], len(later), &u[0], stride, &e[0], len(e))
		return
	}
	moveGo(later, u, stride, e)
}

func moveGo(later, u []float64, stride int, e []float64) {
	for i, by := range e {
		for j, v := range u[i*stride:][:len(later)] {
			later[j] -= float64(by * v)
		}
	}
}

// panel is how many columns of u a pass over several rows reads: they fit the first cache.
const panel = 64

// moveAll is [move] for several rows, which are stride apart in later, with coefficients that are depth apart in e.
func moveAll(later []float64, apart, rows, columns int, u []float64, stride int, e []float64, depth int) {
	for at := 0; at < columns; at += panel {
		n := min(panel, columns-at)
		for r := range rows {
			move(later[r*apart+at:][:n], u[at:], stride, e[r*depth:][:depth])
		}
	}
}

// Energy returns the sum over rows of e H e^T: what the errors e of rows of weights add to the squares of the outputs,
// where H [n, n] are the second moments of the inputs. Both n and the length of a row are a multiple of 4.
func Energy(moments []float64, n int, rows []float64) (sum float64) {
	count := len(rows) / n
	out := make([]float64, len(rows)) // -e H
	moveAll(out, n, count, n, moments, n, rows, n)
	for i, v := range rows {
		sum -= float64(out[i] * v)
	}
	return sum
}
