"""dj-stripe's URLs, where its documentation puts them."""

from django.urls import include, path

urlpatterns = [path("stripe/", include("djstripe.urls", namespace="djstripe"))]
