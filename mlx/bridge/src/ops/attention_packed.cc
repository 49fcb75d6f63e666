// Packing of cache rows to 8 or 4 bits, composed of MLX's operations: for other devices, and as the reference of our
// kernels.
#include <stdexcept>
#include <string>

#include "ops/attention.h"
#include "core/call.h"
#include "cpu/attention/attention.h"

namespace ingot {

namespace {

constexpr int kGroup = cpu::kPackedGroup;

mx::Shape with_last(mx::Shape shape, std::initializer_list<int> last) {
  shape.pop_back();
  shape.insert(shape.end(), last.begin(), last.end());
  return shape;
}

// Returns elements [begin, end) of the last axis.
mx::array part(const mx::array& x, int begin, int end, mx::StreamOrDevice s) {
  mx::Shape start(x.ndim(), 0), stop = x.shape();
  start.back() = begin;
  stop.back() = end;
  return mx::slice(x, start, stop, s);
}

// bfloat16 numbers are kept as bits in the upper halves of uint32.
mx::array as_floats(const mx::array& bits, mx::StreamOrDevice s) { return mx::view(bits, mx::float32, s); }

mx::array upper(const mx::array& bits, const mx::array& carry, mx::StreamOrDevice s) {
  return mx::bitwise_and(mx::add(bits, carry, s), mx::array(uint32_t(0xffff0000)), s);
}

// Converts such bits [..., groups, 1] to bytes [..., 2*groups].
mx::array as_bytes(const mx::array& bits, mx::StreamOrDevice s) {
  auto halves = mx::astype(mx::right_shift(mx::squeeze(bits, -1, s), mx::array(uint32_t(16)), s), mx::uint16, s);
  return mx::view(mx::contiguous(halves, false, s), mx::uint8, s);
}

mx::array from_bytes(const mx::array& bytes, mx::StreamOrDevice s) {
  auto halves = mx::view(mx::contiguous(bytes, false, s), mx::uint16, s);
  auto bits = mx::left_shift(mx::astype(halves, mx::uint32, s), mx::array(uint32_t(16)), s);
  return mx::expand_dims(as_floats(bits, s), -1, s);
}

// Packs codes [..., n], whole groups of the given size, to bytes [..., n/2] with two codes each, and unpacks them.
mx::array halves_joined(const mx::array& codes, int size, mx::StreamOrDevice s) {
  const int n = codes.shape(-1);
  auto groups = mx::reshape(codes, with_last(codes.shape(), {n / size, size}), s);
  auto high = mx::left_shift(part(groups, size / 2, size, s), mx::array(uint8_t(4)), s);
  return mx::reshape(mx::bitwise_or(part(groups, 0, size / 2, s), high, s), with_last(codes.shape(), {n / 2}), s);
}
mx::array halves_apart(const mx::array& bytes, int size, mx::StreamOrDevice s) {
  const int n = bytes.shape(-1);
  auto groups = mx::reshape(bytes, with_last(bytes.shape(), {2 * n / size, size / 2}), s);
  auto low = mx::bitwise_and(groups, mx::array(uint8_t(15)), s),
       high = mx::right_shift(groups, mx::array(uint8_t(4)), s);
  return mx::reshape(mx::concatenate({low, high}, -1, s), with_last(bytes.shape(), {2 * n}), s);
}

// Splits [..., dim] into groups [..., groups, kGroup], padded with the last channel; ungrouped does the reverse.
mx::array grouped(const mx::array& x, mx::StreamOrDevice s) {
  const int dim = x.shape(-1), groups = cpu::packed_groups(dim), more = groups * kGroup - dim;
  auto all =
      more == 0
          ? x
          : mx::concatenate({x, mx::broadcast_to(part(x, dim - 1, dim, s), with_last(x.shape(), {more}), s)}, -1, s);
  return mx::reshape(all, with_last(x.shape(), {groups, kGroup}), s);
}
mx::array ungrouped(const mx::array& x, int dim, mx::StreamOrDevice s) {
  auto shape = x.shape();
  shape.pop_back();
  return part(mx::reshape(x, with_last(shape, {shape.back() * kGroup}), s), 0, dim, s);
}

[[noreturn]] void refuse_rows(const mx::array& x, int bits, const char* what) {
  throw std::invalid_argument("rows " + to_string(x) + " " + what + " " + std::to_string(bits) + " bits");
}

}  // namespace

mx::array pack_rows(const mx::array& x, int bits, mx::StreamOrDevice s) {
  if ((bits != 8 && bits != 4) || x.ndim() == 0 || x.size() == 0 || x.shape(-1) % 4 != 0 ||
      !mx::issubdtype(x.dtype(), mx::floating)) {
    refuse_rows(x, bits, "cannot be packed to");
  }
  const int dim = x.shape(-1);
  auto v = grouped(mx::astype(x, mx::float32, s), s);
  auto odd = mx::sum(mx::subtract(v, v, s), -1, true, s);  // 0, or NaN if an element is not finite
  auto finite = mx::equal(odd, mx::array(0.0f), s);
  auto nan = mx::array(uint32_t(0x7fc00000));
  auto zero = mx::array(0.0f);  // x + 0 turns -0 into 0
  auto low = mx::add(mx::min(v, -1, true, s), zero, s), high = mx::add(mx::max(v, -1, true, s), zero, s);
  auto carry = mx::where(mx::less(low, zero, s), mx::array(uint32_t(0xffff)), mx::array(uint32_t(0)), s);
  auto bias_bits = mx::where(finite, upper(mx::view(low, mx::uint32, s), carry, s), nan, s);
  auto bias = as_floats(bias_bits, s);
  auto most = mx::array(bits == 8 ? 255.0f : 15.0f);
  auto range = mx::divide(mx::subtract(high, bias, s), most, s);
  auto scale_bits = mx::where(finite, upper(mx::view(range, mx::uint32, s), mx::array(uint32_t(0xffff)), s), nan, s);
  auto scale = as_floats(scale_bits, s);
  auto code = mx::round(mx::divide(mx::subtract(v, bias, s), scale, s), 0, s);
  auto codes = ungrouped(mx::astype(mx::where(mx::less(code, most, s), code, most, s), mx::uint8, s), dim, s);
  std::vector<mx::array> parts;
  if (bits == 8) {
    parts.push_back(codes);
  } else {
    const int whole = dim / kGroup * kGroup;
    if (whole > 0) {
      parts.push_back(halves_joined(part(codes, 0, whole, s), kGroup, s));
    }
    if (whole < dim) {
      parts.push_back(halves_joined(part(codes, whole, dim, s), dim - whole, s));
    }
  }
  parts.push_back(as_bytes(scale_bits, s));
  parts.push_back(as_bytes(bias_bits, s));
  return mx::concatenate(std::move(parts), -1, s);
}

mx::array unpack_rows(const mx::array& x, int bits, mx::Dtype as, mx::StreamOrDevice s) {
  const int dim = (bits == 8 || bits == 4) && x.ndim() > 0 && x.size() > 0 && x.dtype() == mx::uint8
                      ? cpu::packed_dim(x.shape(-1), bits)
                      : 0;
  if (dim == 0 || !mx::issubdtype(as, mx::floating)) {
    refuse_rows(x, bits, "are not packed rows of");
  }
  const int bytes = cpu::packed_codes(dim, bits), groups = cpu::packed_groups(dim);
  auto scale = from_bytes(part(x, bytes, bytes + 2 * groups, s), s);
  auto bias = from_bytes(part(x, bytes + 2 * groups, bytes + 4 * groups, s), s);
  auto codes = part(x, 0, bytes, s);
  if (bits == 4) {
    const int whole = dim / kGroup * kGroup;
    std::vector<mx::array> parts;
    if (whole > 0) {
      parts.push_back(halves_apart(part(codes, 0, whole / 2, s), kGroup, s));
    }
    if (whole < dim) {
      parts.push_back(halves_apart(part(codes, whole / 2, dim / 2, s), dim - whole, s));
    }
    codes = parts.size() == 1 ? parts[0] : mx::concatenate(std::move(parts), -1, s);
  }
  auto v = mx::add(mx::multiply(grouped(mx::astype(codes, mx::float32, s), s), scale, s), bias, s);
  return mx::astype(ungrouped(v, dim, s), as, s);
}

}  // namespace ingot
