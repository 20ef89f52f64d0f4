"""FITC written out as a dense Gaussian process with covariance Q + diag(δ)."""

import numpy as np


class Fitc:
    """Solves the full linear system of one arm's rows, for given support points."""

    def __init__(self, kernel, ridge, points, contexts, rewards, prior=0.0):
        self.kernel, self.points, self.contexts = kernel, points, contexts
        self.inverse = np.linalg.inv(kernel(points, points) + 1e-10 * np.eye(len(points)))
        delta = kernel.diagonal(contexts) - self.low_rank(contexts, contexts).diagonal()
        self.noisy = self.low_rank(contexts, contexts) + np.diag(np.maximum(delta, 0) + ridge)
        self.prior, self.centred = prior, rewards - prior

    def low_rank(self, one, two):
        return self.kernel(one, self.points) @ self.inverse @ self.kernel(self.points, two)

    def posterior(self, new):
        cross = self.low_rank(self.contexts, new)
        mean = self.prior + cross.T @ np.linalg.solve(self.noisy, self.centred)
        explained = np.einsum("ij,ij->j", cross, np.linalg.solve(self.noisy, cross))
        return mean, np.sqrt(self.kernel.diagonal(new) - explained)
