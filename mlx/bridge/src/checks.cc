#include "checks.h"

#include <stdexcept>
#include <string>

namespace ingot {

int positive(int v, const char* what) {
  if (v < 1) {
    throw std::invalid_argument(std::string(what) + " is " + std::to_string(v) + ", not positive");
  }
  return v;
}

const mx::array& not_empty(const mx::array& x) {
  if (x.size() == 0) {
    throw std::invalid_argument("an array is empty");
  }
  return x;
}

const mx::array& packed(const mx::array& w, const mx::array& scales) {
  if (w.ndim() < 2 || scales.ndim() != w.ndim() || scales.shape(-2) != w.shape(-2)) {
    throw std::invalid_argument("the packed weights and their scales have different rows");
  }
  return not_empty(w);
}

const mx::array& of_rank_at_most(const mx::array& update, const mx::array& x) {
  if (update.ndim() > x.ndim()) {
    throw std::invalid_argument("the update has more axes than the array");
  }
  return update;
}

mx::array row_major_if_empty(const mx::array& x, mx::StreamOrDevice s) {
  return x.size() == 0 ? mx::zeros(x.shape(), x.dtype(), s) : x;
}

mx::array triangle(int n, int m, int k, mx::Dtype type, mx::StreamOrDevice s) {
  return n > 0 && m > 0 ? mx::tri(n, m, k, type, s) : mx::zeros({n, m}, type, s);
}

namespace {

// Whether the quotient is of signed integers; then b gets its type, and minus tells where b is -1, which becomes 1.
bool signed_quotient(const mx::array& a, mx::array& b, mx::array& minus, mx::StreamOrDevice s) {
  auto type = mx::promote_types(a.dtype(), b.dtype());
  if (!mx::issubdtype(type, mx::signedinteger)) {
    return false;
  }
  b = mx::astype(b, type, s);
  minus = mx::equal(b, mx::array(-1, type), s);
  b = mx::where(minus, mx::array(1, type), b, s);
  return true;
}

}  // namespace

mx::array quotient(const mx::array& a, const mx::array& b, mx::StreamOrDevice s) {
  mx::array divisor = b, minus = b;
  if (!signed_quotient(a, divisor, minus, s)) {
    return mx::floor_divide(a, b, s);
  }
  auto q = mx::floor_divide(a, divisor, s);
  return mx::where(minus, mx::negative(q, s), q, s);
}

mx::array modulus(const mx::array& a, const mx::array& b, mx::StreamOrDevice s) {
  mx::array divisor = b, minus = b;
  return signed_quotient(a, divisor, minus, s) ? mx::remainder(a, divisor, s) : mx::remainder(a, b, s);
}

}  // namespace ingot
