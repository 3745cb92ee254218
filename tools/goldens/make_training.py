"""Golden files for training: what PyTorch computes when it trains a tiny Llama. The gradients of the first step, ten losses and the weights
after ten steps for each optimizer and option, and the learning rates that the schedules of `transformers` give. Writes
tests/golden/training."""

import json
import math
import pathlib
import random
import shutil
import statistics
import unittest.mock

import safetensors.torch
import torch
import torch.nn.functional as F
import transformers

OUT = pathlib.Path(__file__).resolve().parents[2] / "tests/golden/training"
STEPS, PAIRS = 10, 5
BEGIN, END, SEPARATOR, FIRST, VOCABULARY = 1, 2, 3, 4, 40
LAYERS = 2
MATRICES = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
MUON_MOMENTUM = 0.95

# The names are those of the configuration. A max_grad_norm of 0: no clipping.
ADAMW = dict(optimizer="adamw", learning_rate=3e-3, beta1=0.9, beta2=0.98, epsilon=1e-8, weight_decay=0.1, max_grad_norm=1.0,
             label_smoothing=0.0, ema_decay=0.0, base_lr_scale=1.0, layer_lr_decay=1.0)
CASES = {
    "adamw": ADAMW,
    "muon": {**ADAMW, "optimizer": "muon", "learning_rate": 1e-2},
    "smoothing": {**ADAMW, "label_smoothing": 0.1, "max_grad_norm": 0.0, "weight_decay": 0.0},
    "ema": {**ADAMW, "ema_decay": 0.3},
    "layers": {**ADAMW, "base_lr_scale": 0.5, "layer_lr_decay": 0.7},
    "lora": {**ADAMW, "learning_rate": 1e-2, "lora_rank": 3, "lora_scale": 1.5},
}


def make_model():
    # With this seed gradients above and below the clipping norm occur, and none that is nearly zero, where Adam magnifies rounding errors.
    generator = torch.Generator().manual_seed(14)
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(
        vocab_size=VOCABULARY, hidden_size=16, intermediate_size=24, num_hidden_layers=LAYERS, num_attention_heads=4,
        num_key_value_heads=2, head_dim=4, rms_norm_eps=1e-5, rope_theta=10000.0, max_position_embeddings=64,
        tie_word_embeddings=True, bos_token_id=BEGIN, eos_token_id=END, attn_implementation="eager"))
    with torch.no_grad():
        for parameter in model.parameters():
            # Larger than at initialisation, so that gradients are not tiny.
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.1 + (1.0 if parameter.dim() == 1 else 0.0))
    return model


def make_batches():
    rng = random.Random(12)

    def side():
        return [rng.randrange(FIRST, VOCABULARY) for _ in range(rng.randint(1, 8))]

    return [[{"source": side(), "target": side()} for _ in range(PAIRS)] for _ in range(STEPS)]


def losses_of(model, batch, smoothing):
    """The plain loss per label, and the one that is differentiated. Each pair runs alone, so that there is no padding."""
    plain, smoothed, count = 0.0, 0.0, 0
    for pair in batch:
        tokens = [BEGIN, *pair["source"], SEPARATOR, *pair["target"]]
        labels = torch.tensor([*pair["target"], END])
        logits = model(torch.tensor([tokens]), use_cache=False).logits[0, -len(labels):]  # [labels, vocabulary]
        plain = plain + F.cross_entropy(logits, labels, reduction="sum")
        smoothed = smoothed + F.cross_entropy(logits, labels, reduction="sum", label_smoothing=smoothing)
        count += len(labels)
    return plain / count, smoothed / count


def clip(parameters, max_norm):
    """The norm of all gradients before clipping. Not clip_grad_norm_, which adds 1e-6 to it."""
    norm = math.sqrt(sum(float(one.grad.double().square().sum()) for one in parameters))
    if 0 < max_norm < norm:
        for one in parameters:
            one.grad.mul_(max_norm / norm)
    return norm


def lr_scale(name, config):
    """The rate of a parameter as a fraction of the learning rate: smaller for each layer further down."""
    depth = 0
    if "embed" in name:
        depth = LAYERS
    elif name.startswith("model.layers."):
        depth = LAYERS - 1 - int(name.split(".")[2])
    return config["base_lr_scale"] * config["layer_lr_decay"] ** depth


class Muon:
    """torch.optim.Muon with match_rms_adamw, written out: the same algorithm, but there the iterations run in bfloat16, here in float32."""

    def __init__(self, parameters, rate, decay):
        self.parameters, self.rate, self.decay = parameters, rate, decay
        self.momenta = [torch.zeros_like(one) for one in parameters]

    def step(self):
        for parameter, momentum in zip(self.parameters, self.momenta):
            momentum.mul_(MUON_MOMENTUM).add_(parameter.grad)
            update = orthogonalise(parameter.grad + MUON_MOMENTUM * momentum)  # Nesterov
            parameter.mul_(1 - self.rate * self.decay)
            parameter.sub_(self.rate * 0.2 * math.sqrt(max(parameter.shape)) * update)


def orthogonalise(matrix):
    a, b, c = 3.4445, -4.7750, 2.0315
    tall = matrix.size(0) > matrix.size(1)
    x = matrix.T if tall else matrix
    x = x / (x.norm() + 1e-7)
    for _ in range(5):
        square = x @ x.T
        x = a * x + (b * square + c * square @ square) @ x
    return x.T if tall else x


def check_muon(history, config):
    """Compares the class above with PyTorch's own, update by update, on the gradients of a run (one list of matrices per step)."""
    # PyTorch's runs without its conversion to bfloat16, and as it is. Differences are relative to the size of an update. In bfloat16 they
    # are large where the smallest singular values of a gradient are lost in the rounding, so the median says more than the maximum.
    for cast, allowed_median, allowed_worst in ((torch.Tensor.clone, 1e-5, 1e-4), (torch.Tensor.bfloat16, 0.03, 0.25)):
        ours, theirs = ([torch.zeros_like(one).requires_grad_() for one in history[0]] for _ in range(2))
        muon = Muon(ours, config["learning_rate"], config["weight_decay"])
        original = torch.optim.Muon(theirs, lr=config["learning_rate"], weight_decay=config["weight_decay"], momentum=MUON_MOMENTUM,
                                    nesterov=True, adjust_lr_fn="match_rms_adamw")
        differences = []
        for gradients in history:
            for a, b, gradient in zip(ours, theirs, gradients):
                with torch.no_grad():
                    b.copy_(a)
                a.grad, b.grad = gradient.clone(), gradient.clone()
            before = [one.detach().clone() for one in ours]
            with torch.no_grad():
                muon.step()
            with unittest.mock.patch.object(torch.Tensor, "bfloat16", cast):
                original.step()
            differences += [float((a - b).detach().norm() / (a - old).detach().norm()) for a, b, old in zip(ours, theirs, before)]
        median, worst = statistics.median(differences), max(differences)
        print(f"muon: torch.optim.Muon with Tensor.{cast.__name__}: updates differ by {median:.2g} (median), {worst:.2g} (worst)")
        assert median < allowed_median and worst < allowed_worst


class Optimizer:
    """AdamW for all parameters, or for those that Muon does not take."""

    def __init__(self, named, config):
        rate, decay = config["learning_rate"], config["weight_decay"]
        muon = [p for name, p in named.items() if config["optimizer"] == "muon" and name.split(".")[-2] in MATRICES]
        taken = {id(one) for one in muon}
        groups = [dict(params=[p], lr=rate * lr_scale(name, config), weight_decay=decay if p.dim() >= 2 else 0.0)
                  for name, p in named.items() if id(p) not in taken]
        self.parts = [torch.optim.AdamW(groups, betas=(config["beta1"], config["beta2"]), eps=config["epsilon"])]
        if muon:
            self.parts.append(Muon(muon, rate, decay))

    def step(self):
        for part in self.parts:
            part.step()


def add_adapters(model, rank, scale):
    """Freezes the model and adds adapters to the fused matrices: q, k and v are rows of one matrix, gate and up of another."""
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    generator = torch.Generator().manual_seed(13)
    adapters = {}

    def add(name, parts):
        inputs, outputs = parts[0].in_features, sum(part.out_features for part in parts)
        down = (torch.randn(rank, inputs, generator=generator) / math.sqrt(inputs)).requires_grad_()
        # Not zero as at the start of a real run, since the gradients of the other half would be zero as well.
        up = (torch.randn(outputs, rank, generator=generator) * 0.05).requires_grad_()
        adapters[name + ".adapter_down"], adapters[name + ".adapter_up"] = down, up
        begin = 0
        for part in parts:
            def hook(module, inputs, output, begin=begin, end=begin + part.out_features):
                return output + scale * F.linear(F.linear(inputs[0], down), up[begin:end])
            part.register_forward_hook(hook)
            begin += part.out_features

    for i, layer in enumerate(model.model.layers):
        attention, feed_forward = layer.self_attn, layer.mlp
        add(f"block_{i}.attention.qkv", [attention.q_proj, attention.k_proj, attention.v_proj])
        add(f"block_{i}.attention.output", [attention.o_proj])
        add(f"block_{i}.feed_forward.up", [feed_forward.gate_proj, feed_forward.up_proj])
        add(f"block_{i}.feed_forward.down", [feed_forward.down_proj])
    return adapters


def train(case, config, batches):
    model = make_model()
    lora = "lora_rank" in config
    named = add_adapters(model, config["lora_rank"], config["lora_scale"]) if lora else dict(model.named_parameters())
    result = {"initial." + name: one.detach().clone() for name, one in named.items()} if lora else {}
    average = {name: one.detach().clone() for name, one in named.items()}
    optimizer = Optimizer(named, config)
    losses, norms, matrix_gradients = [], [], []
    for step, batch in enumerate(batches):
        for one in named.values():
            one.grad = None
        plain, smoothed = losses_of(model, batch, config["label_smoothing"])
        smoothed.backward()
        losses.append(plain.item())
        if step == 0 and case in ("adamw", "smoothing", "lora"):
            result.update({"gradient." + name: one.grad.clone() for name, one in named.items()})
        with torch.no_grad():
            norms.append(clip(named.values(), config["max_grad_norm"]))
            matrix_gradients.append([one.grad.clone() for name, one in named.items() if name.split(".")[-2] in MATRICES])
            optimizer.step()
            decay = min(config["ema_decay"], (1 + step) / (10 + step))
            for name, one in named.items():
                average[name] = decay * average[name] + (1 - decay) * one
    result.update({"final." + name: one.detach().clone() for name, one in named.items()})
    if config["ema_decay"] > 0:
        result.update({"ema." + name: one for name, one in average.items()})
    if config["optimizer"] == "muon":
        check_muon(matrix_gradients, config)
    result["losses"], result["gradient_norms"] = torch.tensor(losses), torch.tensor(norms)
    return result


def schedules():
    steps, warmup, decay_fraction = 300, 40, 0.2

    def rates(make):
        """What the scheduler gives at its steps 0, 1, 2 …"""
        optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
        scheduler = make(optimizer)
        result = []
        for _ in range(steps + 1):
            result.append(scheduler.get_last_lr()[0])
            optimizer.step()
            scheduler.step()
        return result

    makers = {
        "cosine": lambda o: transformers.get_cosine_schedule_with_warmup(o, warmup, steps),
        "linear": lambda o: transformers.get_linear_schedule_with_warmup(o, warmup, steps),
        "inverse_sqrt": lambda o: transformers.get_inverse_sqrt_schedule(o, warmup, timescale=warmup),
        "constant": lambda o: transformers.get_wsd_schedule(o, warmup, round(decay_fraction * (steps - warmup)),
                                                            num_training_steps=steps, decay_type="linear"),
    }
    points = sorted([*range(0, steps, 10), warmup - 1, warmup + 1, steps - 1])
    result = {
        "steps": steps, "warmup_steps": warmup, "decay_fraction": decay_fraction, "final_lr_fraction": 0.0,
        "note": "step: updates made so far, from 0; progress of the run: step / steps. scheduler_step: that of transformers' scheduler. "
                "Its warm-up begins at 0 and ours at 1 / warmup_steps, so there its step is ours + 1. After the warm-up the steps are the "
                "same, but for inverse_sqrt, which counts the update to come: ours + 1 as well.",
        "schedules": {},
    }
    for name, make in makers.items():
        all_rates = rates(make)
        theirs = [step + 1 if step < warmup or name == "inverse_sqrt" else step for step in points]
        result["schedules"][name] = [{"step": ours, "scheduler_step": their, "share": all_rates[their]}
                                     for ours, their in zip(points, theirs)]
    return result


def write_json(name, value):
    (OUT / name).write_text(json.dumps(value) + "\n")


def main():
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    make_model().save_pretrained(OUT / "model", safe_serialization=True)
    (OUT / "model/generation_config.json").unlink(missing_ok=True)
    batches = make_batches()
    write_json("batches.json", batches)
    write_json("schedules.json", schedules())
    results = {}
    for case, config in CASES.items():
        results[case] = train(case, config, batches)
        tensors = {name: one.contiguous() for name, one in results[case].items()}
        # One entry of metadata only: the order of several would differ from run to run.
        safetensors.torch.save_file(tensors, OUT / f"{case}.safetensors", metadata={"hyper_parameters": json.dumps(config)})
        for name in ("losses", "gradient_norms"):
            print(f"{case}: {name}", " ".join(f"{x:.4f}" for x in results[case][name].tolist()))
    for name, one in results["adamw"].items():  # averaging the weights does not change the training
        assert name not in results["ema"] or torch.equal(one, results["ema"][name]), name
    print("tests/golden/training:", torch.__version__, transformers.__version__)


if __name__ == "__main__":
    main()
