#include "core/checks.h"

#include <algorithm>
#include <stdexcept>
#include <vector>

namespace ingot {

void refuse(const std::string& why) { throw std::invalid_argument(why); }

int positive(int v, const char* what) {
  if (v < 1) {
    throw std::invalid_argument(std::string(what) + " is " + std::to_string(v) + ", not positive");
  }
  return v;
}

int not_negative(int v) {
  if (v < 0) {
    throw std::invalid_argument(std::to_string(v) + " is negative");
  }
  return v;
}

int result_count(int parts) {
  constexpr int kMost = 1024;  // the capacity of the Go side
  if (parts > kMost) {
    throw std::invalid_argument(std::to_string(parts) + " parts: too many results; the limit is " +
                                std::to_string(kMost));
  }
  return parts;
}

const mx::array& not_empty(const mx::array& x) {
  if (x.size() == 0) {
    throw std::invalid_argument("an array is empty");
  }
  return x;
}

namespace {

struct Format {
  const char* name;
  std::vector<int> groups, bits;
};

const Format kFormats[] = {
    {"affine", {32, 64, 128}, {1, 2, 3, 4, 5, 6, 8}}, {"mxfp4", {32}, {4}}, {"mxfp8", {32}, {8}}, {"nvfp4", {16}, {4}}};

bool one_of(const std::vector<int>& list, std::optional<int> v) {
  return !v || std::find(list.begin(), list.end(), *v) != list.end();
}

}  // namespace

const mx::array& packed(const mx::array& w, const mx::array& scales, std::optional<int> group, std::optional<int> bits,
                        const std::string& format) {
  for (auto& f : kFormats) {
    if (f.name == format && !(one_of(f.groups, group) && one_of(f.bits, bits))) {
      throw std::invalid_argument("format " + format + " does not have groups of " + std::to_string(group.value_or(0)) +
                                  " or " +
                                  std::to_string(bits.value_or(0)) + " bits (0: the default)");
    }
  }
  if (w.ndim() < 2 || scales.ndim() != w.ndim() || scales.shape(-2) != w.shape(-2)) {
    throw std::invalid_argument("the packed weights and their scales have different rows");
  }
  return not_empty(w);
}

const mx::array& indexable(const mx::array& x, const mx::array& indices) {
  return indices.size() > 0 ? not_empty(x) : x;
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

// Reports whether a/b is a quotient of signed integers. If so, b is converted to the type of the result, minus is true
// where b is -1, and there b becomes 1.
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
