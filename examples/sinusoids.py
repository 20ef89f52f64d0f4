"""The paper's synthetic problem in five lines."""

import contextgap as cg

explore, exploit = cg.problems.Sinusoids(n_arms=20).sample(1500, seed=0).split(1000, 500)
trace = cg.experiments.run(explore, exploit, kernel=cg.Gaussian(0.0707), ridge=1e-4, seed=0)
for step, average, worst in zip(
    trace.checkpoints, trace.average_regret, trace.worst_regret, strict=True
):
    print(f"{step:5} steps: average regret {average:.4f}, worst {worst:.4f}")
