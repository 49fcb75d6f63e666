// GPU kernels from source text. Creating one on a machine without such a GPU is an error of the caller.
#include "core/call.h"
#include "mlx/backend/cuda/cuda.h"
#include "mlx/backend/metal/metal.h"

namespace ingot {

namespace {

struct Kernel {
  std::string name;
  mx::fast::CustomKernelFunction run;
};

std::vector<Kernel>& kernels() {
  static auto* k = new std::vector<Kernel>;
  return *k;
}

std::vector<std::string> names(const char* const* list, int n) { return {list, list + n}; }

}  // namespace

}  // namespace ingot

using namespace ingot;

const char* ig_kernel_new(const ig_kernel_source* k, int32_t* index) {
  return guard([&] {
    auto in = names(k->inputs, k->n_inputs);
    auto out = names(k->outputs, k->n_outputs);
    if (k->cuda ? !mx::cu::is_available() : !mx::metal::is_available()) {
      throw std::runtime_error(std::string("kernel ") + k->name + ": this machine has no " +
                               (k->cuda ? "CUDA" : "Metal") + " device");
    }
    auto run = k->cuda ? mx::fast::cuda_kernel(k->name, in, out, k->source, k->header, k->contiguous, k->shared_memory)
                       : mx::fast::metal_kernel(k->name, in, out, k->source, k->header, k->contiguous,
                                                k->atomic_outputs);
    kernels().push_back({k->name, std::move(run)});
    *index = int32_t(kernels().size()) - 1;
  });
}

const char* ig_kernel_call(int32_t index, ig_frame* frame, const char* const* template_names) {
  frame->n_outs = 0;
  return guard([&] {
    Kernel& k = kernels().at(index);
    Call call(frame);
    auto inputs = call.arrays();
    int grid[3], threads[3];
    for (int& g : grid) {
      g = call.integer();
    }
    for (int& t : threads) {
      t = call.integer();
    }
    std::vector<mx::Shape> shapes;
    std::vector<mx::Dtype> types;
    for (int n = call.integer(); n > 0; n--) {
      types.push_back(call.dtype());
      shapes.push_back(to_shape(call.integers()));
    }
    std::vector<std::pair<std::string, mx::fast::TemplateArg>> args;
    int n = call.integer();
    for (int i = 0; i < n; i++) {
      switch (call.integer()) {
        case 0:
          args.emplace_back(template_names[i], call.integer());
          break;
        case 1:
          args.emplace_back(template_names[i], call.flag());
          break;
        default:
          args.emplace_back(template_names[i], call.dtype());
      }
    }
    std::optional<float> init;
    if (call.flag()) {
      init = call.real();
    }
    call.result(k.run(inputs, shapes, types, {grid[0], grid[1], grid[2]}, {threads[0], threads[1], threads[2]}, args,
                      init, false, call.s));
  });
}
