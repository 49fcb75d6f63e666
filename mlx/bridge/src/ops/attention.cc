#include "ops/attention.h"

#include "core/checks.h"
#include "cpu/attention/attention.h"
#include "cpu/isa.h"
#include "cpu/node.h"
#include "ops/matrix.h"

namespace ingot {

namespace {

// Returns the stride in elements of an axis of [b, h, l, s] in a mask that broadcasts to it; 0 if the axis is
// broadcast.
int64_t mask_stride(const mx::array& mask, int axis) {
  int at = axis - (4 - int(mask.ndim()));
  if (at < 0 || mask.shape(at) == 1) {
    return 0;
  }
  int64_t stride = 1;
  for (int i = at + 1; i < int(mask.ndim()); i++) {
    stride *= mask.shape(i);
  }
  return stride;
}

bool mask_fits(const mx::array& mask, const mx::Shape& full, mx::Dtype out) {
  if (mask.ndim() > 4 || mask.size() == 0 ||
      (mask.dtype() != mx::bool_ && mx::promote_types(mask.dtype(), out) != out)) {
    return false;
  }
  for (int i = 0; i < int(mask.ndim()); i++) {
    int n = mask.shape(i), want = full[size_t(i) + 4 - mask.ndim()];
    if (n != 1 && n != want) {
      return false;
    }
  }
  return true;
}

// Reports whether the kernels support this attention. Everything else goes to MLX, which also reports the errors.
bool kernels_support(const mx::array& q, const mx::array& k, const mx::array& v, const std::optional<mx::array>& mask,
                  const std::optional<mx::array>& sinks, bool causal) {
  return q.ndim() == 4 && k.ndim() == 4 && v.ndim() == 4 && floating(q.dtype()) && k.dtype() == q.dtype() &&
         v.dtype() == q.dtype() && k.shape(0) == q.shape(0) && v.shape(0) == q.shape(0) && k.shape(1) == v.shape(1) &&
         q.shape(1) % k.shape(1) == 0 && k.shape(2) == v.shape(2) && k.shape(3) == q.shape(3) &&
         q.shape(3) <= cpu::kMaxHeadDim && v.shape(3) <= cpu::kMaxHeadDim && !(causal && mask) &&
         !(causal && q.shape(2) > k.shape(2)) &&
         (!mask || mask_fits(*mask, {q.shape(0), q.shape(1), q.shape(2), k.shape(2)}, q.dtype())) &&
         (!sinks || (sinks->ndim() == 1 && sinks->shape(0) == q.shape(1) &&
                     mx::promote_types(sinks->dtype(), q.dtype()) == q.dtype()));
}

}  // namespace

mx::array attention(const mx::array& q, const mx::array& k, const mx::array& v, const std::optional<mx::array>& mask,
                    const std::optional<mx::array>& sinks, float scale, bool causal, mx::StreamOrDevice s) {
  not_empty(q), not_empty(k), not_empty(v);
  if (!cpu::on_cpu(s) || !kernels_support(q, k, v, mask, sinks, causal)) {
    return mx::fast::scaled_dot_product_attention(q, k, v, scale, causal ? "causal" : "", mask, sinks, false, s);
  }
  std::vector<mx::array> inputs{q, k, v};
  cpu::AttentionMask m;
  int64_t mask_batch = 0;
  if (mask) {
    m.additive = mask->dtype() != mx::bool_;
    m.head = mask_stride(*mask, 1);
    m.row = mask_stride(*mask, 2);
    m.key = mask_stride(*mask, 3);
    mask_batch = mask_stride(*mask, 0) * (m.additive ? 4 : 1);
    inputs.push_back(m.additive ? mx::astype(*mask, mx::float32, s) : *mask);
  }
  if (sinks) {
    inputs.push_back(mx::astype(*sinks, mx::float32, s));
  }
  const int batch = q.shape(0), heads = q.shape(1), rows = q.shape(2), dim = q.shape(3);
  const int kv_heads = k.shape(1), keys = k.shape(2), value_dim = v.shape(3);
  cpu::AttentionShape shape{type_of(q.dtype()), type_of(k.dtype()), heads, kv_heads, dim, value_dim, scale};
  shape.causal = causal;
  shape.fast = cpu::math() == cpu::Math::fast;
  auto body = [=, masked = mask.has_value(), has_sinks = sinks.has_value()](const cpu::Memory& memory) {
    const int64_t size = shape.q_type == cpu::Type::f32 ? 4 : 2;
    std::vector<cpu::AttentionRows> all;
    for (int64_t b = 0; b < batch; b++) {
      cpu::AttentionRows r{};
      r.q = memory.input<char>(0) + b * heads * rows * dim * size;
      r.out = memory.output<char>(0) + b * heads * rows * value_dim * size;
      r.q_head = int64_t(rows) * dim;
      r.q_row = dim;
      r.out_head = int64_t(rows) * value_dim;
      r.out_row = value_dim;
      r.position = keys - rows;
      r.count = rows;
      r.runs.push_back({memory.input<char>(1) + b * kv_heads * keys * dim * size,
                        memory.input<char>(2) + b * kv_heads * keys * value_dim * size,
                        int64_t(keys) * dim, dim, int64_t(keys) * value_dim, value_dim, 0, keys});
      r.mask = m;
      if (masked) {
        r.mask.data = memory.input<char>(3) + b * mask_batch;
      }
      all.push_back(std::move(r));
    }
    cpu::attention(shape, all, has_sinks ? memory.input<float>(masked ? 4 : 3) : nullptr);
  };
  return cpu::node("attention", std::move(inputs), {{batch, heads, rows, value_dim}}, {q.dtype()}, s,
                   std::move(body))[0];
}

}  // namespace ingot
